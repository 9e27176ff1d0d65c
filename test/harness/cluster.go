package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/charts"
	"github.com/capstan-project/capstan/test/bed"
)

// Scheme returns a scheme with all types that the scenarios use.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme,
		apiextensionsv1.AddToScheme,
		v1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // a programming error, which the first test finds
		}
	}

	return scheme
}

// NewClient returns a client without client-side rate limits.
func NewClient(config *rest.Config) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1

	return client.New(config, client.Options{Scheme: Scheme()})
}

// Prepare installs the operator's own CRDs into a cluster, as users have them, and returns a client for it.
func Prepare(ctx context.Context, config *rest.Config) (client.Client, error) {
	c, err := NewClient(config)
	if err != nil {
		return nil, err
	}

	definitions, err := charts.CRDs()
	if err != nil {
		return nil, err
	}

	return c, installCRDs(ctx, c, definitions)
}

// PrepareForTest is like Prepare, with the CRDs of InstallCRDs.
func PrepareForTest(ctx context.Context, config *rest.Config) (client.Client, error) {
	c, err := NewClient(config)
	if err != nil {
		return nil, err
	}

	return c, InstallCRDs(ctx, c)
}

// InstallCRDs creates the operator's own CRDs, unless they exist, and waits until they are served. They lack their
// descriptions.
func InstallCRDs(ctx context.Context, c client.Client) error { return installCRDs(ctx, c, OwnCRDs()) }

// OwnCRDs returns the operator's own CRDs without descriptions, for a bed that starts with them.
func OwnCRDs() []*unstructured.Unstructured {
	definitions, err := bareCRDs()
	if err != nil {
		panic(err) // a programming error, which the first test finds
	}

	return definitions
}

var bareCRDs = sync.OnceValues(func() ([]*unstructured.Unstructured, error) {
	definitions, err := charts.CRDs()
	for _, definition := range definitions {
		bed.DropDescriptions(definition.Object)
	}

	return definitions, err
})

// BareChart copies the operator's chart into a folder and returns its path. Its CRDs are those of InstallCRDs.
func BareChart(root, dir string) (string, error) {
	chart := filepath.Join(dir, "capstan")
	if err := os.CopyFS(chart, os.DirFS(filepath.Join(root, "charts/capstan"))); err != nil {
		return "", err
	}

	folder := filepath.Join(chart, "crds")
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o755)); err != nil {
		return "", err
	}

	for _, definition := range OwnCRDs() {
		data, err := yaml.Marshal(definition.Object)
		if err != nil {
			return "", err
		}

		if err := os.WriteFile(filepath.Join(folder, definition.GetName()+".yaml"), data, 0o600); err != nil {
			return "", err
		}
	}

	return chart, nil
}

// installCRDs creates CRDs, unless they exist, and waits until provider resources are served.
func installCRDs(ctx context.Context, c client.Client, definitions []*unstructured.Unstructured) error {
	for _, definition := range definitions {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, definition.DeepCopy())); err != nil {
			return err
		}
	}

	// The API server prepares a kind when it is first asked for it, and has its client wait for a second: all at once.
	group, ctx := errgroup.WithContext(ctx)
	for _, t := range v1alpha2.ProviderTypes() {
		group.Go(func() error {
			served := func(ctx context.Context) (bool, error) { return c.List(ctx, t.NewList()) == nil, nil }
			return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, served)
		})
	}

	return group.Wait()
}

// Prepare creates the objects that the release's resource refers to: namespace, ConfigMap and
// Secret.
func (r *Release) Prepare(ctx context.Context, c client.Client) error {
	cm, err := r.ConfigMap()
	if err != nil {
		return err
	}

	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}}, cm}
	if len(r.Variables) > 0 {
		objects = append(objects, r.Secret())
	}

	for _, o := range objects {
		if err := c.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}

	return nil
}

// Install calls Prepare and creates the release's resource.
func (r *Release) Install(ctx context.Context, c client.Client) (v1alpha2.Provider, error) {
	if err := r.Prepare(ctx, c); err != nil {
		return nil, err
	}

	p := r.Resource()

	return p, c.Create(ctx, p)
}
