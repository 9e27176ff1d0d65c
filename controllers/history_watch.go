package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
)

// newHistory adds to the manager a cache of the metadata of Helm's records: what other programs do to a release is seen there.
func newHistory(mgr ctrl.Manager) (cache.Cache, error) {
	history, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultTransform: onlyLabels,
		ByObject: map[client.Object]cache.ByObject{secretMetadata(): {
			Label: labels.SelectorFromSet(labels.Set{"owner": "helm"}),
			Field: fields.OneTermEqualSelector("type", release.RecordType),
		}},
	})
	if err != nil {
		return nil, err
	}
	return history, mgr.Add(history)
}

// onlyLabels keeps of a record's metadata what the watch looks at.
func onlyLabels(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		m.ManagedFields, m.Annotations, m.OwnerReferences = nil, nil, nil
	}
	return object, nil
}

// onHistory wakes the provider whose release another program works on.
func (r *Reconciler) onHistory(history cache.Cache) source.Source {
	find := handler.EnqueueRequestsFromMapFunc(r.enqueue(func(p v1alpha2.Provider, record client.Object) bool {
		return p.GetNamespace() == record.GetNamespace() && releaseName(v1alpha2.Label(p)) == record.GetLabels()["name"]
	}))
	return source.Kind(history, secretMetadata(), find, foreignWork)
}

// foreignWork lets through what other programs do to records. What Capstan does itself it knows already, and old records go by themselves.
var foreignWork = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return release.ForeignWork(e.Object.GetLabels()) },
	UpdateFunc: func(e event.UpdateEvent) bool { return release.ForeignWork(e.ObjectNew.GetLabels()) },
	DeleteFunc: func(e event.DeleteEvent) bool { return release.Current(e.Object.GetLabels()) },
}
