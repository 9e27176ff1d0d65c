package crds

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// AddToScheme adds CRDs to a scheme and makes clients read them as protobuf. While providers are
// installed, encoding the schemas as JSON for each event of a watch would be a notable part of the
// API server's work.
func AddToScheme(scheme *runtime.Scheme) error {
	if err := apiutil.AddToProtobufScheme(apiextensionsv1.AddToScheme); err != nil {
		return err
	}

	return apiextensionsv1.AddToScheme(scheme)
}

// StripSchemas is a transformation for caches that removes the schemas of CRDs, which leaves a few
// hundred bytes. It reduces managedFields to the fields that Capstan has applied and the names of the others that wrote
// the versions.
func StripSchemas(object any) (any, error) {
	crd, ok := object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return object, nil
	}

	crd.ManagedFields = slices.DeleteFunc(crd.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return !isApplyByCapstan(entry) &&
			entry.FieldsV1 != nil && !bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:versions"`))
	})
	for i, entry := range crd.ManagedFields {
		if !isApplyByCapstan(entry) {
			crd.ManagedFields[i].FieldsV1 = nil
		}
	}

	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Schema = nil
	}

	return object, nil
}

// AffectedProviders returns the labels of the providers that a change of a CRD affects: its owner, all providers whose
// charts include a CRD of that name, and all that wait for its kind. before is nil if the CRD was created, and now is
// nil if it was deleted.
//
// The API server takes seconds to serve dozens of CRDs, one after the other. A provider counts as affected only when
// none of its other CRDs is about to be served.
func (a *Applier) AffectedProviders(
	ctx context.Context, before, now *apiextensionsv1.CustomResourceDefinition,
) []string {
	switch {
	case now == nil:
		return a.concerned(before)
	case before == nil && !isEstablished(now), before != nil && isUnchanged(before, now):
		return nil
	}

	labels := a.concerned(now)
	if isEstablished(now) && (before == nil || isUnchangedExceptServed(before, now)) {
		labels = slices.DeleteFunc(labels, func(label string) bool { return a.awaitsCRDs(ctx, label) })
	}

	return labels
}

// awaitsCRDs reports whether the chart of a provider has CRDs that the API server is about to serve.
func (a *Applier) awaitsCRDs(ctx context.Context, label string) bool {
	for name := range a.includedCRDs(label) {
		live, err := a.getCached(ctx, name)
		if err == nil && live != nil && !isEstablished(live) && obstacleOf(live) == "" && takenNames(live) == nil {
			return true
		}
	}

	return false
}

// isUnchanged reports whether two states of a CRD are the same for an Applier.
func isUnchanged(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return isEstablished(a) == isEstablished(b) && isUnchangedExceptServed(a, b)
}

// isUnchangedExceptServed reports whether two states of a CRD differ at most in whether the API server serves it.
func isUnchangedExceptServed(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return reflect.DeepEqual(takenNames(a), takenNames(b)) &&
		obstacleOf(a) == obstacleOf(b) &&
		a.Generation == b.Generation &&
		maps.Equal(a.Labels, b.Labels) &&
		a.Annotations[digestAnnotation] == b.Annotations[digestAnnotation] &&
		reflect.DeepEqual(appliedEntry(a), appliedEntry(b)) &&
		a.Annotations[observedAnnotation] == b.Annotations[observedAnnotation] &&
		a.Annotations[v1alpha2.AdoptCRDAnnotation] == b.Annotations[v1alpha2.AdoptCRDAnnotation] &&
		slices.Equal(a.Status.StoredVersions, b.Status.StoredVersions) &&
		a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero()
}
