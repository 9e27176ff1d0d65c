package v1alpha2_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

const (
	crdFolder    = "../../charts/capstan/crds"
	sampleFolder = "../../config/samples"
)

// apiServer is a real API server with the CRDs, started by the first test that needs it.
var apiServer = bedtest.Shared{Options: func() bed.Options { return bedtest.APIServer(harness.OwnCRDs()...) }}

func TestMain(m *testing.M) { apiServer.Main(m) }

// connect returns a client for the API server.
func connect(t *testing.T) client.Client {
	t.Helper()

	config := apiServer.Get(t).Config()

	scheme := runtime.NewScheme()
	if err := v1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// validate returns the API server's validation errors for the creation of an object. Unknown fields
// are errors too.
func validate(t *testing.T, object client.Object) []string {
	t.Helper()
	c := client.NewDryRunClient(client.WithFieldValidation(connect(t), metav1.FieldValidationStrict))
	err := c.Create(t.Context(), object)

	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status) || status.Status().Reason != metav1.StatusReasonInvalid:
		t.Fatalf("rejected for a reason other than validation: %s", err)
	}

	var messages []string
	for _, cause := range status.Status().Details.Causes {
		messages = append(messages, cause.Field+": "+cause.Message)
	}

	return messages
}

// provider returns an object with a spec written in YAML.
func provider(t *testing.T, providerType v1alpha2.ProviderType, name, spec string) *unstructured.Unstructured {
	t.Helper()

	object := &unstructured.Unstructured{Object: map[string]any{}}

	var content map[string]any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}

	object.Object["spec"] = content
	object.SetGroupVersionKind(providerType.GroupVersionKind())
	object.SetName(name)
	object.SetNamespace("default")

	return object
}
