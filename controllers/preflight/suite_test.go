package preflight_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release/state"
)

const (
	core           = v1alpha2.CoreProviderType
	infrastructure = v1alpha2.ProviderType("InfrastructureProvider")
	bootstrap      = v1alpha2.ProviderType("BootstrapProvider")
)

// option changes a provider.
type option func(v1alpha2.Provider)

// provider returns a provider in the namespace "system".
func provider(t v1alpha2.ProviderType, name string, options ...option) v1alpha2.Provider {
	p := t.New()
	p.SetNamespace("system")
	p.SetName(name)

	for _, o := range options {
		o(p)
	}

	p.SetUID(types.UID(string(t) + p.GetNamespace() + name))

	return p
}

func in(namespace string) option {
	return func(p v1alpha2.Provider) { p.SetNamespace(namespace) }
}

func remote(secret string) option {
	return func(p v1alpha2.Provider) {
		p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{}
		p.GetSpec().KubeConfig.SecretRef.Name = secret
	}
}

func created(age time.Duration) option {
	return func(p v1alpha2.Provider) { p.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-age))) }
}

func contract(contract string) option {
	return func(p v1alpha2.Provider) { p.GetStatus().Contract = &contract }
}

// installed is the status of a provider that has a release.
func installed(p v1alpha2.Provider) { p.GetStatus().Release = &v1alpha2.ReleaseStatus{} }

// begins announces the first revision.
func begins(p v1alpha2.Provider) { state.Begin(p.GetStatus(), true, 1, "v1.0.0") }

func deleted(p v1alpha2.Provider) {
	p.SetFinalizers([]string{v1alpha2.Finalizer})
	p.SetDeletionTimestamp(new(metav1.Now()))
}

func condition(name string) option {
	return func(p v1alpha2.Provider) { conditions.MarkTrue(p, name, "Test", "") }
}

// pausing asks for a pause, and paused is what it results in.
func pausing(p v1alpha2.Provider) { p.GetSpec().Paused = true }

func paused(p v1alpha2.Provider) {
	pausing(p)
	condition(v1alpha2.PausedCondition)(p)
}

func ready(p v1alpha2.Provider) { condition(v1alpha2.ReadyCondition)(p) }

// checker returns a checker that knows the providers.
func checker(t *testing.T, providers ...v1alpha2.Provider) *preflight.Checker {
	t.Helper()

	return &preflight.Checker{Client: builder(t, providers...).Build()}
}

func builder(t *testing.T, providers ...v1alpha2.Provider) *fake.ClientBuilder {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, kind := range v1alpha2.ProviderTypes() {
		b.WithIndex(kind.New(), preflight.NameField, func(o client.Object) []string { return []string{o.GetName()} })
	}

	for _, p := range providers {
		b.WithObjects(p)
	}

	return b
}

// want is the expected result of a check; the zero value is success.
type want struct {
	reason  string
	message string
	waiting bool
}

// expect compares the result of a check.
func expect(t *testing.T, err error, w want) {
	t.Helper()

	g := NewWithT(t)
	if w == (want{}) {
		g.Expect(err).NotTo(HaveOccurred())
		return
	}

	failed := problem.Of(err)
	g.Expect(failed).NotTo(BeNil(), "%v", err)
	g.Expect(want{failed.Reason, failed.Message, failed.Outcome == problem.Waiting}).To(Equal(w))
}
