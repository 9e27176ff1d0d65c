package crds

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

const (
	// digestAnnotation holds, on a CRD, the digest of what was last applied to it.
	digestAnnotation = v1alpha2.Prefix + "/crd-digest"

	// versionAnnotation holds the version of the provider whose CRD this is: an older one never
	// replaces it.
	versionAnnotation = v1alpha2.Prefix + "/crd-version"

	// annotationInjectCA is where cert-manager reads whose certificate to trust.
	annotationInjectCA = "cert-manager.io/inject-ca-from"
)

// digestVersion is part of each digest; raise it when body changes what it makes of the same file.
const digestVersion = "1"

// definition is one CRD file of a chart.
type definition struct {
	name   string
	digest string
	file   chart.File
}

func newDefinition(f chart.File, namespace string) definition {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", digestVersion, namespace, f.Data))
	return definition{name: crdName(f), digest: hex.EncodeToString(sum[:]), file: f}
}

// crdName is the CRD's name: chartgen names the files after them.
func crdName(f chart.File) string {
	return strings.TrimSuffix(strings.TrimPrefix(f.Name, "crds/"), ".yaml")
}

// keeping is the digest of the definition with versions that it does not have itself.
func (d definition) keeping(versions []string) string {
	if len(versions) == 0 {
		return d.digest
	}

	return d.digest + "+" + strings.Join(versions, ",")
}

// parse reads the file.
func (d definition) parse() (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(d.file.Data, &object.Object); err != nil {
		return nil, &RefusedError{Name: d.name, Err: err}
	}

	return object, nil
}

// typed reads the file as what it is.
func (d definition) typed() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(d.file.Data, crd); err != nil {
		return nil, &RefusedError{Name: d.name, Err: err}
	}

	return crd, nil
}

// body makes the body of the request that applies a definition: with its references to the
// provider's namespace, our annotations, and versions of the live CRD that have to stay.
func (d definition) body(
	namespace, version string,
	kept []apiextensionsv1.CustomResourceDefinitionVersion,
) ([]byte, error) {
	object, err := d.parse()
	if err != nil {
		return nil, err
	}

	var names []string
	for _, v := range kept {
		names = append(names, v.Name)
	}

	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}

	if _, certificate, found := strings.Cut(annotations[annotationInjectCA], "/"); found {
		annotations[annotationInjectCA] = namespace + "/" + certificate
	}

	annotations[digestAnnotation], annotations[versionAnnotation] = d.keeping(names), version
	object.SetAnnotations(annotations)

	service := []string{"spec", "conversion", "webhook", "clientConfig", "service"}
	if _, found, _ := unstructured.NestedMap(object.Object, service...); found {
		if err := unstructured.SetNestedField(object.Object, namespace, append(service, "namespace")...); err != nil {
			return nil, &RefusedError{Name: d.name, Err: err}
		}
	}

	if err := appendVersions(object, kept); err != nil {
		return nil, &RefusedError{Name: d.name, Err: err}
	}

	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")

	return json.Marshal(object.Object)
}

// appendVersions adds versions to a CRD.
func appendVersions(object *unstructured.Unstructured, kept []apiextensionsv1.CustomResourceDefinitionVersion) error {
	if len(kept) == 0 {
		return nil
	}

	versions, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
	if err != nil {
		return err
	}

	for i := range kept {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&kept[i])
		if err != nil {
			return err
		}

		versions = append(versions, content)
	}

	return unstructured.SetNestedSlice(object.Object, versions, "spec", "versions")
}

// keep takes from a live CRD the versions of the given names, as they are but for one thing:
// objects are no longer stored in them. A CRD that is gone, nil, has none.
func keep(
	live *apiextensionsv1.CustomResourceDefinition,
	names []string,
) (kept []apiextensionsv1.CustomResourceDefinitionVersion) {
	if live == nil {
		return nil
	}

	for _, v := range live.Spec.Versions {
		if slices.Contains(names, v.Name) {
			v.Storage = false
			kept = append(kept, v)
		}
	}

	return kept
}

// storage is the name of the version that objects are stored in; empty in a CRD that is not valid.
func storage(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}

	return ""
}

// missing are the names that are not among others, in order.
func missing(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
