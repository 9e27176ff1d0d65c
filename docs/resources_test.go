package docs_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// TestResourcesAreAccepted has the API server judge every provider resource, whole or in part, in a
// block marked as YAML.
func TestResourcesAreAccepted(t *testing.T) {
	c := start(t)
	if err := harness.InstallCRDs(t.Context(), c.client, root); err != nil {
		t.Fatal(err)
	}

	strict := client.NewDryRunClient(client.WithFieldValidation(c.client, metav1.FieldValidationStrict))
	count := 0

	for _, b := range blocks(t, "yaml") {
		for _, resource := range resources(t, b) {
			count++

			resource.SetNamespace("default")
			NewWithT(t).Expect(strict.Create(t.Context(), resource)).To(Succeed(), "%s: %s", b, b.text)
		}
	}

	NewWithT(t).Expect(count).To(BeNumerically(">=", 10))
}

// resources are the provider resources of a block: whole ones, the spec or metadata of one, and
// those in the values of the operator's chart.
func resources(t *testing.T, b block) (found []*unstructured.Unstructured) {
	t.Helper()

	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(b.text), 4096)

	for {
		var document map[string]any

		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return found
		}

		if err != nil {
			t.Fatalf("%s: %s", b, err)
		}

		if object := (&unstructured.Unstructured{Object: document}); object.GroupVersionKind().
			GroupVersion() ==
			v1alpha2.GroupVersion {
			found = append(found, object)
			continue
		}

		listed, _ := document["providers"].([]any)
		for _, item := range listed {
			fields := item.(map[string]any)
			found = append(
				found,
				provider(fields["kind"].(string), fields["name"].(string), map[string]any{"spec": fields["spec"]}),
			)
		}

		if _, whole := document["kind"]; !whole && (document["spec"] != nil || document["metadata"] != nil) {
			found = append(found, provider("InfrastructureProvider", "aws", document))
		}
	}
}

// provider completes what there is of a resource.
func provider(kind, name string, fields map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: fields}
	object.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind(kind))
	object.SetName(name)

	return object
}
