// Package versions answers questions about the versions of a CustomResourceDefinition: which one
// objects are stored in, which one to read them in, and why they cannot be converted.
package versions

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/controllers/object"
)

// Find returns the version with the given name, or nil if the CRD does not have it.
func Find(
	crd *apiextensionsv1.CustomResourceDefinition,
	name string,
) *apiextensionsv1.CustomResourceDefinitionVersion {
	return first(crd, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
}

// Storage returns the version that new objects are stored in, or nil if the CRD is invalid and has
// none.
func Storage(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	return first(crd, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
}

// StorageName returns the name of the storage version. It is empty if the CRD is invalid and has
// none.
func StorageName(crd *apiextensionsv1.CustomResourceDefinition) string {
	if v := Storage(crd); v != nil {
		return v.Name
	}

	return ""
}

// Preferred returns the version to read and write objects in: the storage version, which needs no
// conversion, if it is served, and the first served version otherwise. It is nil if no version is
// served.
func Preferred(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	if v := Storage(crd); v != nil && v.Served {
		return v
	}

	return first(crd, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
}

// Stored returns the served versions besides the storage version that objects may be stored in.
func Stored(crd *apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinitionVersion {
	var stored []*apiextensionsv1.CustomResourceDefinitionVersion

	for _, name := range crd.Status.StoredVersions {
		if v := Find(crd, name); v != nil && v.Served && !v.Storage {
			stored = append(stored, v)
		}
	}

	return stored
}

// Served returns the names of the served versions, in the order of the CRD.
func Served(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var names []string

	for _, v := range crd.Spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}

	return names
}

// Resource returns the resource of the CRD's objects in a version.
func Resource(crd *apiextensionsv1.CustomResourceDefinition, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group:    crd.Spec.Group,
		Version:  version,
		Resource: crd.Spec.Names.Plural,
	}
}

// ConversionProblem explains why objects of a CRD could not be read, if its conversion webhook is the cause, and says
// what to do about it. It is empty otherwise.
func ConversionProblem(crd *apiextensionsv1.CustomResourceDefinition, err error) string {
	webhook := converter(crd)
	if webhook == "" || !object.IsUnconverted(err) {
		return ""
	}

	return fmt.Sprintf("its conversion webhook, %s, fails: %s; %s",
		webhook, object.Reason(crd.Spec.Names.Kind, err), object.ConversionFix(crd.Name))
}

// converter returns what converts the objects of a CRD: a Service, or a URL. It is empty if nothing does.
func converter(crd *apiextensionsv1.CustomResourceDefinition) string {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return ""
	}

	if service := conversion.Webhook.ClientConfig.Service; service != nil {
		return object.Name("Service", service.Namespace, service.Name)
	}

	return ptr.Deref(conversion.Webhook.ClientConfig.URL, "")
}

func first(
	crd *apiextensionsv1.CustomResourceDefinition,
	matches func(apiextensionsv1.CustomResourceDefinitionVersion) bool,
) *apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(crd.Spec.Versions, matches)
	if i < 0 {
		return nil
	}

	return &crd.Spec.Versions[i]
}
