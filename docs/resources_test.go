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

// TestResources checks with an API server that all provider resources in YAML blocks are valid,
// including partial ones.
func TestResources(t *testing.T) {
	c := start(t)
	if err := harness.InstallCRDs(t.Context(), c.client); err != nil {
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

// resources returns the provider resources in a block: complete ones, those with only a spec or
// metadata, and those in the values of the operator's chart.
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

		object := &unstructured.Unstructured{Object: document}
		if object.GroupVersionKind().GroupVersion() == v1alpha2.GroupVersion {
			found = append(found, object)
			continue
		}

		listed, _ := document["providers"].([]any)
		for _, item := range listed {
			fields := item.(map[string]any)
			if fields["url"] != nil {
				continue // of clusterctl's configuration
			}

			kind, name := fields["kind"].(string), fields["name"].(string)
			found = append(found, provider(kind, name, map[string]any{"spec": fields["spec"]}))
		}

		_, complete := document["kind"]
		if !complete && (document["spec"] != nil || document["metadata"] != nil) {
			found = append(found, provider("InfrastructureProvider", "aws", document))
		}
	}
}

// provider returns a resource with the given fields.
func provider(kind, name string, fields map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: fields}
	object.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind(kind))
	object.SetName(name)

	return object
}
