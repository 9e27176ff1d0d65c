package crds

import (
	"bytes"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// AddToScheme makes a scheme know CRDs, and clients read them as protobuf: encoding their schemas
// as JSON for each event of a watch is a notable part of an API server's work while providers are
// installed.
func AddToScheme(scheme *runtime.Scheme) error {
	if err := apiutil.AddToProtobufScheme(apiextensionsv1.AddToScheme); err != nil {
		return err
	}

	return apiextensionsv1.AddToScheme(scheme)
}

// WithoutSchemas is a cache's transformation that keeps of a CRD the few hundred bytes that are not
// its schemas. Of managedFields only the names of those are left who wrote its versions.
func WithoutSchemas(object any) (any, error) {
	crd, ok := object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return object, nil
	}

	crd.ManagedFields = slices.DeleteFunc(crd.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.FieldsV1 != nil && !bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:versions"`))
	})
	for i := range crd.ManagedFields {
		crd.ManagedFields[i].FieldsV1 = nil
	}

	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Schema = nil
	}

	return object, nil
}

// Served reports whether the API server serves the kind of a CRD.
func Served(crd *apiextensionsv1.CustomResourceDefinition) bool {
	c := condition(crd, apiextensionsv1.Established)
	return c != nil && c.Status == apiextensionsv1.ConditionTrue
}

// Same reports whether two states of a CRD are the same to an Applier.
func Same(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return Served(a) == Served(b) && refusal(a) == refusal(b) && a.Generation == b.Generation &&
		a.Annotations[digestAnnotation] == b.Annotations[digestAnnotation] &&
		a.Annotations[v1alpha2.AdoptCRDAnnotation] == b.Annotations[v1alpha2.AdoptCRDAnnotation] &&
		slices.Equal(a.Status.StoredVersions, b.Status.StoredVersions) &&
		a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero()
}

// interested notes that a provider brings a CRD.
func (a *Applier) interested(crd, label string) {
	labels, _ := a.interests.LoadOrStore(crd, &sync.Map{})
	labels.(*sync.Map).Store(label, true)
}

// Concerned are the labels of the providers that a CRD concerns, because it is theirs or has the
// name of one that they bring.
func (a *Applier) Concerned(crd client.Object) []string {
	var concerned []string
	if owner := crd.GetLabels()[v1alpha2.ClusterctlProviderLabel]; owner != "" {
		concerned = append(concerned, owner)
	}

	if labels, ok := a.interests.Load(crd.GetName()); ok {
		labels.(*sync.Map).Range(func(label, _ any) bool {
			if !slices.Contains(concerned, label.(string)) {
				concerned = append(concerned, label.(string))
			}

			return true
		})
	}

	return concerned
}

// FirstSeen says, once, that the deletion of a CRD has begun.
func (a *Applier) FirstSeen(deleting *apiextensionsv1.CustomResourceDefinition) bool {
	_, known := a.deletions.LoadOrStore(deleting.UID, true)
	return !known
}

// refusal is why the API server does not accept a CRD's names; empty when it does, or has not
// looked yet.
func refusal(crd *apiextensionsv1.CustomResourceDefinition) string {
	if c := condition(crd, apiextensionsv1.NamesAccepted); c != nil && c.Status == apiextensionsv1.ConditionFalse {
		return c.Message
	}

	return ""
}

func condition(
	crd *apiextensionsv1.CustomResourceDefinition,
	conditionType apiextensionsv1.CustomResourceDefinitionConditionType,
) *apiextensionsv1.CustomResourceDefinitionCondition {
	for i := range crd.Status.Conditions {
		if crd.Status.Conditions[i].Type == conditionType {
			return &crd.Status.Conditions[i]
		}
	}

	return nil
}
