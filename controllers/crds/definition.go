package crds

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
)

const (
	// digestAnnotation on a CRD is the digest of what was last applied to it.
	digestAnnotation = v1alpha2.Prefix + "/crd-digest"

	// versionAnnotation on a CRD is the version of the provider that it was applied for. An older
	// version never replaces it.
	versionAnnotation = v1alpha2.Prefix + "/crd-version"
)

// digestVersion is part of every digest. Increment it when prepare returns something else for the same
// file.
const digestVersion = "2"

// definition is one CRD file of a chart.
type definition struct {
	name string
	// digest of the file and the namespace.
	digest string
	file   chart.File
	// namespace of the provider, to which references in the file are moved.
	namespace string
}

func newDefinition(f chart.File, namespace string) definition {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n", digestVersion, namespace)
	hash.Write(f.Data)

	return definition{name: crdName(f), digest: hex.EncodeToString(hash.Sum(nil)), file: f, namespace: namespace}
}

// crdName returns the name of the CRD in a file, which is named after it; see plan.Chart.
func crdName(f chart.File) string {
	return strings.TrimSuffix(strings.TrimPrefix(f.Name, "crds/"), ".yaml")
}

// digestWith returns the digest of the definition with additional versions.
func (d definition) digestWith(kept []string) string {
	if len(kept) == 0 {
		return d.digest
	}

	return d.digest + "+" + strings.Join(kept, ",")
}

// parse parses the file as a CRD.
func (d definition) parse() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := d.decode(crd); err != nil {
		return nil, err
	}

	return crd, nil
}

// decode decodes the file into a type with the fields of CRDs that are needed. The error is a *problem.Error.
func (d definition) decode(into any) error {
	content, err := d.file.JSON()
	if err == nil {
		err = json.Unmarshal(content, into)
	}

	mistyped := (*json.UnmarshalTypeError)(nil)
	if errors.As(err, &mistyped) { // its text has types of Go
		err = fmt.Errorf("its field %s must not be a JSON %s; choose a version of the provider in which it is valid",
			mistyped.Field, mistyped.Value)
	}

	if err != nil {
		return Refused(d.name, err)
	}

	return nil
}

// served returns the names of the definition's versions, and whether each is served.
func (d definition) served() (map[string]bool, error) {
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}

	if err := d.decode(&crd); err != nil {
		return nil, err
	}

	served := map[string]bool{}
	for _, v := range crd.Spec.Versions {
		served[v.Name] = v.Served
	}

	return served, nil
}

// prepare returns what is applied: the file with the provider's namespace in all references, without a placeholder for
// the CA and what the API server sets, with our annotations, and with versions of the live CRD that must be kept.
func (d definition) prepare(
	request Request, kept []apiextensionsv1.CustomResourceDefinitionVersion,
) (*unstructured.Unstructured, error) {
	content, err := d.file.JSON()
	object := &unstructured.Unstructured{}

	if err == nil {
		err = utiljson.Unmarshal(content, &object.Object) // integers become int64
	}

	if err != nil {
		return nil, Refused(d.name, err)
	}

	if version := object.GetAPIVersion(); version != apiextensionsv1.SchemeGroupVersion.String() {
		return nil, Refused(d.name, fmt.Errorf(
			"its API version %q is no longer served; choose a version of the provider that has %s",
			version, apiextensionsv1.SchemeGroupVersion))
	}

	bundle.MoveCRD(object, d.namespace)
	removePlaceholder(object)
	d.annotate(object, request, kept)

	if err := appendVersions(object, kept); err != nil {
		return nil, Refused(d.name, err)
	}

	bundle.RemoveServerFields(object)
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")

	return object, nil
}

// removePlaceholder removes a caBundle that is no certificate. The API server would refuse to replace the certificate
// that cert-manager has injected.
func removePlaceholder(crd *unstructured.Unstructured) {
	pem, err := base64.StdEncoding.DecodeString(bundle.CABundle(crd.Object))
	if err != nil || !bundle.HasCertificate(pem) {
		bundle.RemoveCABundle(crd.Object)
	}
}

func (d definition) annotate(
	object *unstructured.Unstructured,
	request Request,
	kept []apiextensionsv1.CustomResourceDefinitionVersion,
) {
	names := make([]string, 0, len(kept))
	for _, v := range kept {
		names = append(names, v.Name)
	}

	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}

	annotations[digestAnnotation] = d.digestWith(names)
	annotations[versionAnnotation] = request.Version
	annotations[ownerAnnotation] = request.owner()
	object.SetAnnotations(annotations)
}

// withoutDescriptions returns a copy of a CRD without the descriptions of its fields. The API server accepts it exactly
// if it accepts the CRD.
func withoutDescriptions(crd map[string]any) map[string]any {
	bare := runtime.DeepCopyJSON(crd)
	all, _, _ := unstructured.NestedFieldNoCopy(bare, "spec", "versions")
	versions, _ := all.([]any)

	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			schema, _, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema")
			removeDescriptions(schema)
		}
	}

	return bare
}

// removeDescriptions removes the descriptions of a schema's fields, but for those in allOf, anyOf, oneOf and not, which
// are invalid.
func removeDescriptions(value any) {
	schema, ok := value.(map[string]any)
	if !ok {
		return // additionalProperties may be a boolean
	}

	if _, valid := schema["description"].(string); valid {
		delete(schema, "description")
	}

	properties, _ := schema["properties"].(map[string]any)
	for _, property := range properties {
		removeDescriptions(property)
	}

	removeDescriptions(schema["items"])
	removeDescriptions(schema["additionalProperties"])
}

// appendVersions adds versions to a CRD.
func appendVersions(object *unstructured.Unstructured, kept []apiextensionsv1.CustomResourceDefinitionVersion) error {
	if len(kept) == 0 {
		return nil
	}

	all, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
	if err != nil {
		return err
	}

	for i := range kept {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&kept[i])
		if err != nil {
			return err
		}

		all = append(all, content)
	}

	return unstructured.SetNestedSlice(object.Object, all, "spec", "versions")
}

// pickVersions returns the named versions of a live CRD. New objects are no longer stored in them;
// otherwise they stay as they are.
func pickVersions(
	live *apiextensionsv1.CustomResourceDefinition,
	names []string,
) (picked []apiextensionsv1.CustomResourceDefinitionVersion) {
	for _, v := range live.Spec.Versions {
		if slices.Contains(names, v.Name) {
			v.Storage = false
			picked = append(picked, v)
		}
	}

	return picked
}

// without returns the names that are not among others, in their order.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// DefinedKind is a kind that a CRD defines.
type DefinedKind struct {
	Resource   schema.GroupResource
	Namespaced bool
}

// DefinedKinds returns the kinds that the CRDs of a chart define. It skips CRDs that cannot be parsed.
func DefinedKinds(files []chart.File) map[schema.GroupKind]DefinedKind {
	kinds := map[schema.GroupKind]DefinedKind{}

	for _, file := range files {
		var crd struct {
			Spec struct {
				Group, Scope string
				Names        struct{ Kind, Plural string }
			}
		}

		if err := (definition{file: file}).decode(&crd); err != nil {
			continue // applying it says why
		}

		kinds[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = DefinedKind{
			Resource:   schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural},
			Namespaced: crd.Spec.Scope == string(apiextensionsv1.NamespaceScoped),
		}
	}

	return kinds
}
