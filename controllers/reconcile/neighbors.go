package reconcile

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
)

// neighborKinds are the kinds of the objects of other providers that a Service can confuse.
var neighborKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Service"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
}

// warnOfMisrouted warns if Services of a revision select pods of other providers in the namespace, or the other way
// round. The revision was applied, so that of two providers which are installed at the same time one sees the other.
// Only a namespace with several providers costs requests.
func (r *run) warnOfMisrouted(ctx context.Context, objects []*unstructured.Unstructured) {
	providers, err := r.Preflight.Others(ctx, r.provider)
	if err != nil || !slices.ContainsFunc(providers, func(p v1alpha2.Provider) bool {
		return p.GetNamespace() == r.provider.GetNamespace()
	}) {
		return
	}

	var others []*unstructured.Unstructured

	for _, kind := range neighborKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)

		// An account need not be allowed to list them.
		err := r.target.Client.List(
			ctx, list, client.InNamespace(r.provider.GetNamespace()), client.HasLabels{v1alpha2.ClusterctlProviderLabel})
		if err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("Cannot read the Services of other providers", "problem", err.Error())
			return
		}

		for i := range list.Items {
			if list.Items[i].GetLabels()[v1alpha2.ClusterctlProviderLabel] != v1alpha2.Label(r.provider) {
				others = append(others, &list.Items[i])
			}
		}
	}

	r.emit(r.provider, report.Misrouted(append(misrouted(objects, others), misrouted(others, objects)...)))
}

// misrouted describes the Services among some objects that select the pods of other objects in their namespace.
func misrouted(objects, others []*unstructured.Unstructured) []string {
	var found []string

	for _, service := range objects {
		selector := bundle.NestedLabels(service.Object, "spec", "selector")
		if service.GroupVersionKind().GroupKind() != neighborKinds[0].GroupKind() || len(selector) == 0 {
			continue
		}

		for _, workload := range others {
			pods := bundle.NestedLabels(bundle.PodTemplate(workload.Object), "metadata", "labels")
			if workload.GetNamespace() == service.GetNamespace() && selector.AsSelector().Matches(pods) {
				found = append(found, fmt.Sprintf("%s selects the pods of %s", describe(service), describe(workload)))
			}
		}
	}

	return found
}

// describe names an object and its provider.
func describe(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s of %s", object.KeyOf(o), o.GetLabels()[v1alpha2.ClusterctlProviderLabel])
}
