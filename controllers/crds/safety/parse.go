package safety

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Parse returns the CRDs among YAML documents, such as a provider's components or the files of a
// chart's crds/ folder. Other documents are skipped without being parsed, so they may contain
// variables.
func Parse(data []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition

	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return crds, nil
		}

		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}

		crd, err := parseDocument(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}

		if crd != nil {
			crds = append(crds, crd)
		}
	}
}

// parseDocument returns the CRD in a document, or nil if the document is something else.
func parseDocument(document []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	const kind = "CustomResourceDefinition"

	if !bytes.Contains(document, []byte(kind)) {
		return nil, nil
	}

	meta := metav1.TypeMeta{}
	if err := yaml.Unmarshal(document, &meta); err != nil || meta.Kind != kind {
		return nil, nil //nolint:nilerr // what cannot be parsed is no CRD, but may be a template
	}

	if supported := apiextensionsv1.SchemeGroupVersion.String(); meta.APIVersion != supported {
		return nil, fmt.Errorf("CustomResourceDefinition has the apiVersion %s; only %s is supported",
			meta.APIVersion, supported)
	}

	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(document, crd); err != nil {
		return nil, fmt.Errorf("invalid CustomResourceDefinition: %w", err)
	}

	return crd, nil
}
