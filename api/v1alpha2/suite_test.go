package v1alpha2_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
)

const (
	crdFolder    = "../../config/crd/bases"
	sampleFolder = "../../config/samples"
)

// server is a real API server with the CRDs installed, started by the first test that needs it.
var server = sync.OnceValue(func() *apiServer { return startAPIServer(context.Background()) })

// stop ends the server if it was started.
var stop = func() error { return nil }

type apiServer struct {
	*bed.Bed
	client client.Client
	err    error
}

func startAPIServer(ctx context.Context) *apiServer {
	s := &apiServer{}
	if s.Bed, s.err = bed.Start(ctx, bed.Options{Nodes: -1, WithoutCertManager: true}); s.err != nil {
		return s
	}

	stop = s.Stop
	if _, s.err = envtest.InstallCRDs(s.Config(), envtest.CRDInstallOptions{Paths: []string{crdFolder}}); s.err != nil {
		return s
	}

	scheme := runtime.NewScheme()
	if s.err = v1alpha2.AddToScheme(scheme); s.err != nil {
		return s
	}

	s.client, s.err = client.New(s.Config(), client.Options{Scheme: scheme})

	return s
}

func TestMain(m *testing.M) {
	code := m.Run()

	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)

		code = max(code, 1)
	}

	os.Exit(code)
}

// connect returns a client for the API server.
func connect(t *testing.T) client.Client {
	t.Helper()

	s := server()
	if s.err != nil {
		t.Fatal(s.err)
	}

	return s.client
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
