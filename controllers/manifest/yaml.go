package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/controllers/object"
)

// bufferSize is how much the YAML decoder reads at first to tell YAML from JSON.
const bufferSize = 4096

// Decode returns the objects of a manifest, in its order and with the items of lists in place of
// the lists. Its errors contain nothing of the manifest but names.
func Decode(manifest string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured

	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), bufferSize)

	for n := 1; ; n++ {
		var document runtime.RawExtension

		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}

		if err != nil {
			return nil, fmt.Errorf("document %d of the manifest is not YAML", n) // the cause may quote it
		}

		if raw := bytes.TrimSpace(document.Raw); len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}

		decoded, err := decodeDocument(document.Raw)
		if err != nil {
			return nil, fmt.Errorf("document %d of the manifest: %w", n, err)
		}

		objects = append(objects, decoded...)
	}
}

func decodeDocument(document []byte) ([]*unstructured.Unstructured, error) {
	decoded, _, err := unstructured.UnstructuredJSONScheme.Decode(document, nil, nil)
	if err != nil { // its text contains the whole document
		return nil, errors.New("no Kubernetes object: it needs apiVersion and kind")
	}

	switch decoded := decoded.(type) {
	case *unstructured.UnstructuredList:
		objects := make([]*unstructured.Unstructured, 0, len(decoded.Items))
		for i := range decoded.Items {
			objects = append(objects, clean(&decoded.Items[i]))
		}

		return objects, nil
	case *unstructured.Unstructured:
		if decoded.GetName() == "" {
			return nil, fmt.Errorf("a %s without metadata.name", decoded.GetKind())
		}

		return []*unstructured.Unstructured{clean(decoded)}, nil
	}

	return nil, errors.New("no Kubernetes object")
}

// controllerAnnotations are annotations in which Kubernetes' controllers count the changes of an object.
var controllerAnnotations = []string{
	appsv1.DeprecatedTemplateGeneration, "deployment.kubernetes.io/revision",
}

// clean removes what an object that was exported from a cluster has, and a new one does not. Code generators write some
// of that without a value, too. The status of other kinds than those of Kubernetes may be a part of the object like any
// other, and that of a CRD is left out where it is applied.
func clean(o *unstructured.Unstructured) *unstructured.Unstructured {
	bundle.RemoveServerFields(o)

	for _, annotation := range controllerAnnotations {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", annotation)
	}

	unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "creationTimestamp")

	if bundle.IsKubernetesGroup(o.GroupVersionKind().Group) && o.GetKind() != crdKind {
		delete(o.Object, "status")
	}

	return o
}

// Encode returns objects as a manifest of at most limit.MaxText.
func Encode(objects []*unstructured.Unstructured) (string, error) {
	var out strings.Builder

	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return "", fmt.Errorf("write %s: %w", object.KeyOf(o), err)
		}

		if out.Len()+len(text) > limit.MaxText {
			return "", fmt.Errorf("the manifest up to %s is larger than %d MiB", object.KeyOf(o), limit.MaxText>>20)
		}

		out.WriteString("---\n")
		out.Write(text)

		// Readers take the line break before a separator for a part of that, even if it ends a block of text.
		if bytes.ContainsRune(text, '|') {
			out.WriteString("# end\n")
		}
	}

	return out.String(), nil
}
