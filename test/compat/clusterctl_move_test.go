package compat

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// namespaceToMove has the cluster that is moved.
const namespaceToMove = "berlin"

var _ = Describe("clusterctl", func() {
	Describe("with small providers", Ordered, func() { testMoves(smallRepository) })

	Describe("with real providers", Ordered, func() { testMoves(realRepository) })
})

// testMoves moves a cluster between clusters with the providers of a local repository.
func testMoves(repository func() string) {
	var (
		first, second *world
		providers     string
		everything    map[string]any
	)

	// An identity and its Secret are shared by all clusters, so clusterctl copies them.
	shared := []string{"AWSClusterStaticIdentity /account", "Secret " + awsNamespace + "/account"}

	// move moves the cluster, and checks that everything has arrived, and only that.
	move := func(ctx context.Context, from, to *world) {
		GinkgoHelper()

		before := from.movable(ctx)
		Expect(before).To(Equal(everything))

		from.setStatus(ctx, namespaceToMove)

		expectUndisturbed := []func(){from.undisturbed(ctx), to.undisturbed(ctx)}

		from.clusterctl(ctx, "move", "--namespace", namespaceToMove, "--to-kubeconfig", to.kubeconfig)

		after := to.movable(ctx)

		report("before, in the source", before)
		report("after, in the target", after)
		report("after, in the source", from.movable(ctx))

		Expect(after).To(Equal(everything))
		Expect(slices.Collect(maps.Keys(from.movable(ctx)))).To(ConsistOf(shared))

		for _, expect := range expectUndisturbed {
			expect()
		}
	}

	BeforeAll(func(ctx SpecContext) {
		providers = repository()
		first = newWorldWithProviders(ctx, providers)
		second = newWorldWithProviders(ctx, providers)

		first.createCluster(ctx, namespaceToMove)
		everything = first.movable(ctx)
		Expect(everything).To(HaveLen(len(objectsToMove)))
	})

	It("describes a cluster", func(ctx SpecContext) {
		Expect(first.clusterctl(ctx, "describe", "cluster", "berlin", "--namespace", namespaceToMove)).To(And(
			ContainSubstring("Cluster berlin/berlin"), ContainSubstring("DockerCluster berlin/berlin"),
			ContainSubstring("KubeadmControlPlane berlin/berlin"), ContainSubstring("Machine berlin/berlin-1")))
	})

	It("moves it from Capstan to Capstan", func(ctx SpecContext) {
		move(ctx, first, second)

		unrelated := client.ObjectKey{Namespace: namespaceToMove, Name: "unrelated"}
		Expect(first.admin.Get(ctx, unrelated, &corev1.Secret{})).To(Succeed())
		Expect(second.admin.Get(ctx, unrelated, &corev1.Secret{})).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	})

	It("moves it back", func(ctx SpecContext) {
		move(ctx, second, first)
	})

	It("moves a cluster from a bootstrap cluster of clusterctl to Capstan", func(ctx SpecContext) {
		Expect(first.Stop()).To(Succeed())

		bootstrap := newWorld(ctx, providers)
		for _, provider := range providersToMove {
			bootstrap.initWithClusterctl(ctx, provider.label)
		}

		bootstrap.removeWebhooks(ctx)
		bootstrap.createCluster(ctx, namespaceToMove)

		move(ctx, bootstrap, second)
	})
}

// undisturbed notes what runs in the cluster, and returns a check that it still runs: that no pod and no object of a
// provider was replaced, that Helm's revisions are the same, and that the operator has written nothing meanwhile but
// statuses, by the API server's audit log.
func (w *world) undisturbed(ctx context.Context) (check func()) {
	GinkgoHelper()

	began := time.Now()
	identities, err := harness.Identities(ctx, w.admin)
	Expect(err).NotTo(HaveOccurred())
	revisions, err := harness.Revisions(ctx, w.admin)
	Expect(err).NotTo(HaveOccurred())

	return func() {
		GinkgoHelper()

		for _, provider := range providersToMove {
			concerned := harness.Concerns(provider.label + "-system")
			Expect(harness.Writes(w.Bed, operatorUser, began, concerned)).To(BeEmpty())
		}

		Expect(harness.Identities(ctx, w.admin)).To(Equal(identities))
		Expect(harness.Revisions(ctx, w.admin)).To(Equal(revisions))
	}
}

// report prints how many objects there are.
func report(when string, objects map[string]any) {
	kinds := map[string]int{}

	for name := range objects {
		kind, _, _ := strings.Cut(name, " ")
		kinds[kind]++
	}

	AddReportEntry(fmt.Sprintf("%s: %d objects, %d of them Secrets: %v", when, len(objects), kinds["Secret"], kinds))
}

// realRepository returns a local repository of real providers: the newest release of each that the tests need.
func realRepository() string {
	GinkgoHelper()

	releases := testproviders.Folder(GinkgoT())
	repository := GinkgoT().TempDir()

	for _, provider := range providersToMove {
		label := provider.label
		newest := load(context.Background(), releases, label, "").Bundle.Version
		folder := filepath.Join(label, newest)
		Expect(os.CopyFS(filepath.Join(repository, folder), os.DirFS(filepath.Join(releases, folder)))).To(Succeed())
	}

	return repository
}

// newWorldWithProviders starts a control plane on which Capstan has installed the providers of a local repository.
func newWorldWithProviders(ctx context.Context, repository string) *world {
	GinkgoHelper()

	w := newWorld(ctx, repository)
	w.startOperator()

	var providers []v1alpha2.Provider

	for _, provider := range providersToMove {
		release := load(ctx, repository, provider.label, "")
		if provider.label == "infrastructure-aws" {
			release.Variables = harness.AWSVariables
		}

		Expect(release.Prepare(ctx, w.admin)).To(Succeed())

		p := release.Resource()
		p.GetSpec().Release = &v1alpha2.ReleaseSpec{Drift: v1alpha2.DriftOff} // their webhooks are removed below
		Expect(w.admin.Create(ctx, p)).To(Succeed())

		providers = append(providers, p)
	}

	for _, p := range providers {
		Eventually(w.installed(ctx, p)).WithTimeout(3 * time.Minute).Should(Equal(p.GetSpec().Version))
		Eventually(w.item(ctx, p)).Should(HaveKeyWithValue("version", p.GetSpec().Version))
	}

	w.removeWebhooks(ctx)

	return w
}

// initWithClusterctl installs a provider with clusterctl, in the namespace that Capstan's resources have here.
func (w *world) initWithClusterctl(ctx context.Context, label string) {
	GinkgoHelper()

	kind, name := v1alpha2.ParseLabel(label)
	args := []string{"init", "--" + strings.TrimSuffix(label, "-"+name), name, "--target-namespace", label + "-system"}

	if kind == v1alpha2.CoreProviderType {
		args[1] = "--core"
		args = append(args, "--bootstrap", "-", "--control-plane", "-")
	}

	w.clusterctl(ctx, args...)

	// It tries cert-manager's API in a namespace of its own, and again in the next call.
	tried := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cert-manager-test"}}

	Eventually(func() error { return w.admin.Get(ctx, client.ObjectKeyFromObject(tried), tried) }).
		Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
}

// removeWebhooks removes the webhooks of the providers, because no pod answers them.
func (w *world) removeWebhooks(ctx context.Context) {
	GinkgoHelper()

	w.run(ctx, "kubectl", "delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all")
}
