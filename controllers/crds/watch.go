package crds

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// AddToScheme makes a scheme know CRDs, and clients read them as protobuf: encoding their schemas as JSON for each event of
// a watch is a notable part of an API server's work while providers are installed.
func AddToScheme(scheme *runtime.Scheme) error {
	if err := apiutil.AddToProtobufScheme(apiextensionsv1.AddToScheme); err != nil {
		return err
	}
	return apiextensionsv1.AddToScheme(scheme)
}

// WithoutSchemas is a cache's transformation that keeps of a CRD the few hundred bytes that are not its schemas.
func WithoutSchemas(object any) (any, error) {
	if crd, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
		crd.ManagedFields = nil
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema = nil
		}
	}
	return object, nil
}

// Served says whether the API server serves the kind of a CRD.
func Served(crd *apiextensionsv1.CustomResourceDefinition) bool {
	c := condition(crd, apiextensionsv1.Established)
	return c != nil && c.Status == apiextensionsv1.ConditionTrue
}

// Same says whether two states of a CRD are the same to an Applier.
func Same(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return Served(a) == Served(b) && refusal(a) == refusal(b) &&
		a.Annotations[digestAnnotation] == b.Annotations[digestAnnotation] &&
		a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero()
}

// refusal is why the API server does not accept a CRD's names; empty when it does, or has not looked yet.
func refusal(crd *apiextensionsv1.CustomResourceDefinition) string {
	if c := condition(crd, apiextensionsv1.NamesAccepted); c != nil && c.Status == apiextensionsv1.ConditionFalse {
		return c.Message
	}
	return ""
}

func condition(crd *apiextensionsv1.CustomResourceDefinition, conditionType apiextensionsv1.CustomResourceDefinitionConditionType) *apiextensionsv1.CustomResourceDefinitionCondition {
	for i := range crd.Status.Conditions {
		if crd.Status.Conditions[i].Type == conditionType {
			return &crd.Status.Conditions[i]
		}
	}
	return nil
}
