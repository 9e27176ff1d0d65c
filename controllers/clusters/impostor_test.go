package clusters_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/removal"
)

// TestImpostor checks that providers in the cluster of a tenant's API server, which claims to be the operator's own
// cluster, have no effect on those of the operator's own cluster.
func TestImpostor(t *testing.T) {
	g := NewWithT(t)
	pool, _ := newPool(t, secret("there", kubeConfig(serve(t, "local"))))

	// Those of the tenant are older.
	theirCore := claimant(v1alpha2.CoreProviderType, v1alpha2.CoreProviderName)
	theirs := claimant(v1alpha2.InfrastructureProviderType, "contested")

	ours := member(v1alpha2.InfrastructureProviderType, "contested")
	core := member(v1alpha2.CoreProviderType, v1alpha2.CoreProviderName)
	core.GetStatus().Release = &v1alpha2.ReleaseStatus{}

	for _, p := range []v1alpha2.Provider{theirCore, theirs, ours, core} {
		target(t, pool, p)
	}

	cached := cacheOf(t, theirCore, theirs, ours, core)
	checker := &preflight.Checker{Client: cached, Cluster: pool.Identity}
	no := func(v1alpha2.Provider) bool { return false }

	counts, err := checker.Core(t.Context(), ours)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(counts.GetUID()).To(Equal(core.GetUID()), "the core of the cluster is another one")
	g.Expect(checker.Identity(t.Context(), ours, no)).To(Succeed(), "a provider is installed")
	g.Expect(checker.Contract(t.Context(), core, "v1beta1")).To(Succeed(), "core changes its contract")

	paused := member(v1alpha2.CoreProviderType, v1alpha2.CoreProviderName)
	paused.GetStatus().Conditions = []metav1.Condition{{Type: v1alpha2.PausedCondition, Status: metav1.ConditionTrue}}
	g.Expect(checker.Unpause(t.Context(), paused, "v1beta1")).To(Succeed(), "core is unpaused")
	g.Expect(removes(t.Context(), cached, pool.Identity, core)).To(Succeed(), "core is removed")
}

// member returns a provider in the operator's own cluster.
func member(kind v1alpha2.ProviderType, name string) v1alpha2.Provider {
	p := kind.New()
	p.SetNamespace("ours")
	p.SetName(name)
	p.SetUID(types.UID("our " + name))
	p.SetCreationTimestamp(metav1.NewTime(time.Now()))

	return p
}

// claimant returns an installed provider in the cluster of the tenant's server.
func claimant(kind v1alpha2.ProviderType, name string) v1alpha2.Provider {
	p := kind.New()
	provider("", "", "there").GetSpec().DeepCopyInto(p.GetSpec())
	p.SetNamespace("tiny")
	p.SetName(name)
	p.SetUID(types.UID("their " + name))
	p.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-time.Hour)))

	*p.GetStatus() = v1alpha2.ProviderStatus{
		InstalledVersion: new("v1.0.0"),
		Contract:         new("v1beta2"),
		Release:          &v1alpha2.ReleaseStatus{ClusterUID: "local"},
	}

	return p
}

// cacheOf returns a cache with the providers.
func cacheOf(t *testing.T, providers ...client.Object) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(providers...)
	for _, kind := range v1alpha2.ProviderTypes() {
		builder.WithIndex(kind.New(), preflight.NameField, func(o client.Object) []string { return []string{o.GetName()} })
	}

	return builder.Build()
}

// removes returns what keeps core from being removed.
func removes(ctx context.Context, cached client.Client, of preflight.ClusterOf, core v1alpha2.Provider) error {
	r := removal.Removal{Cache: cached, Cluster: of, Provider: core, Target: &clusters.Target{}}

	return r.CheckOthers(ctx)
}
