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

// Parse reads the CRDs among YAML documents, such as a provider's components or a file of a chart's
// crds/. Other objects are skipped without being understood, so they may hold variables.
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

		if !bytes.Contains(document, []byte("CustomResourceDefinition")) {
			continue
		}

		meta := metav1.TypeMeta{}
		if err := yaml.Unmarshal(document, &meta); err != nil || meta.Kind != "CustomResourceDefinition" {
			continue
		}

		if meta.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
			return nil, fmt.Errorf(
				"document %d is a CustomResourceDefinition of %s; only %s is supported",
				number,
				meta.APIVersion,
				apiextensionsv1.SchemeGroupVersion,
			)
		}

		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(document, crd); err != nil {
			return nil, fmt.Errorf("document %d is not a valid CustomResourceDefinition: %w", number, err)
		}

		crds = append(crds, crd)
	}
}
