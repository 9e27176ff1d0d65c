package compat

import (
	"cmp"
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
	"sigs.k8s.io/yaml"

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

	// moveBy moves the cluster by a function, and checks that everything has arrived, and only that.
	moveBy := func(ctx context.Context, from, to *world, move func()) {
		GinkgoHelper()

		before := from.movable(ctx)
		Expect(before).To(Equal(everything))

		from.setStatus(ctx, namespaceToMove)

		expectUndisturbed := []func(){from.undisturbed(ctx), to.undisturbed(ctx)}

		move()

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

	move := func(ctx context.Context, from, to *world) {
		GinkgoHelper()
		moveBy(ctx, from, to, func() {
			from.clusterctl(ctx, "move", "--namespace", namespaceToMove, "--to-kubeconfig", to.kubeconfig)
		})
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

	It("moves it to a managed hub by the commands of clusterctl.md", func(ctx SpecContext) {
		hub := newWorld(ctx, providers)
		hub.startOperator()

		folder := writeResources(hub.prepareProviders(ctx, providers))
		commands := runbook(map[string]string{"providers/": folder, "hub.kubeconfig": hub.kubeconfig})
		Expect(commands).To(HaveLen(4))

		second.run(ctx, "kubectl", commands[0]...)
		hub.run(ctx, "kubectl", commands[1]...)
		hub.removeWebhooks(ctx)

		// Nothing applies clusters here, so nothing is suspended.
		Expect(commands[2]).To(ContainElement("suspend"))

		moveBy(ctx, second, hub, func() { second.clusterctl(ctx, commands[3]...) })
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

	providers := w.prepareProviders(ctx, repository)
	for _, p := range providers {
		Expect(w.admin.Create(ctx, p)).To(Succeed())
	}

	for _, p := range providers {
		Eventually(w.installed(ctx, p)).WithTimeout(3 * time.Minute).Should(Equal(p.GetSpec().Version))
		Eventually(w.item(ctx, p)).Should(HaveKeyWithValue("version", p.GetSpec().Version))
	}

	w.removeWebhooks(ctx)

	return w
}

// prepareProviders creates what the resources of the providers of a local repository refer to, and returns these.
func (w *world) prepareProviders(ctx context.Context, repository string) []v1alpha2.Provider {
	GinkgoHelper()

	var providers []v1alpha2.Provider

	for _, provider := range providersToMove {
		release := load(ctx, repository, provider.label, "")
		if provider.label == "infrastructure-aws" {
			release.Variables = harness.AWSVariables
		}

		Expect(release.Prepare(ctx, w.admin)).To(Succeed())

		p := release.Resource()
		p.GetSpec().Release = &v1alpha2.ReleaseSpec{Drift: v1alpha2.DriftOff} // their webhooks are removed
		providers = append(providers, p)
	}

	return providers
}

// writeResources writes the resources of providers to files, as they are in Git, and returns the folder.
func writeResources(providers []v1alpha2.Provider) (folder string) {
	GinkgoHelper()

	folder = GinkgoT().TempDir()

	for _, p := range providers {
		kind, _ := v1alpha2.ParseLabel(v1alpha2.Label(p))
		p.GetObjectKind().SetGroupVersionKind(v1alpha2.GroupVersion.WithKind(string(kind)))

		content, err := yaml.Marshal(p)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(folder, v1alpha2.Label(p)+".yaml"), content, 0o600)).To(Succeed())
	}

	return folder
}

// runbook returns the arguments of the commands of clusterctl.md that move a cluster to a hub, with other names.
func runbook(names map[string]string) [][]string {
	GinkgoHelper()

	page, err := os.ReadFile(filepath.Join(root, "docs/clusterctl.md"))
	Expect(err).NotTo(HaveOccurred())

	_, section, _ := strings.Cut(string(page), "\n## From a bootstrap cluster")
	_, block, _ := strings.Cut(section, "```sh\n")
	block, _, _ = strings.Cut(block, "```")

	var commands [][]string

	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, "#")

		args := strings.Fields(line)
		for i, arg := range args {
			args[i] = cmp.Or(names[arg], arg)
		}

		commands = append(commands, args[1:])
	}

	return commands
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
