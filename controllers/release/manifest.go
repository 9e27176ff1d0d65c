package release

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// decodeManifest reads the objects of a manifest: YAML documents, lists taken apart. Its errors
// quote nothing of the manifest but what redact takes out.
func decodeManifest(manifest string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured

	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(manifest)), 4096)

	for n := 1; ; n++ {
		var document runtime.RawExtension

		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}

		if err != nil {
			return nil, fmt.Errorf("document %d of the manifest is not YAML: %w", n, err)
		}

		if raw := bytes.TrimSpace(document.Raw); len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}

		decoded, err := decodeObjects(document.Raw)
		if err != nil {
			return nil, fmt.Errorf("document %d of the manifest: %w", n, err)
		}

		objects = append(objects, decoded...)
	}
}

func decodeObjects(document []byte) ([]*unstructured.Unstructured, error) {
	decoded, _, err := unstructured.UnstructuredJSONScheme.Decode(document, nil, nil)
	if err != nil { // its text holds the whole document
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

// clean removes the "creationTimestamp: null" that generated manifests are full of: it would make a
// patch of nothing.
func clean(o *unstructured.Unstructured) *unstructured.Unstructured {
	unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "creationTimestamp")

	return o
}
