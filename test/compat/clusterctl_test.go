package compat

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// clusterTemplates are what `clusterctl generate cluster` finds in the release of the provider.
var clusterTemplates = map[string]string{
	"cluster-template.yaml": `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: "${CLUSTER_NAME}", namespace: "${NAMESPACE}"}
spec: {topology: {classRef: {name: quick}, version: v1.34.0}}
`,
	"clusterclass-quick.yaml": `
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: quick}
`,
}

// clusterClasses is the CustomResourceDefinition of ClusterClasses, which clusterctl asks for.
const clusterClasses = `
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterclasses.cluster.x-k8s.io}
spec:
  group: cluster.x-k8s.io
  scope: Namespaced
  names: {kind: ClusterClass, listKind: ClusterClassList, plural: clusterclasses, singular: clusterclass}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

var itemKind = schema.GroupVersionKind{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "Provider"}

var _ = Describe("With providers of Capstan, clusterctl", Ordered, func() {
	var (
		w            *world
		repository   string
		core, docker v1alpha2.Provider
	)

	BeforeAll(func(ctx SpecContext) {
		repository = samples()

		for name, content := range clusterTemplates {
			file := filepath.Join(repository, "infrastructure-docker/v1.0.0", name)
			Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		}

		components := filepath.Join(repository, "cluster-api/v1.0.0/core-components.yaml")
		content, err := os.ReadFile(components)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(components, append(content, clusterClasses...), 0o600)).To(Succeed())

		w = newWorld(ctx, repository)
		w.startOperator()

		core = w.install(ctx, repository, "cluster-api", "v1.0.0")
		docker = w.install(ctx, repository, "infrastructure-docker", "v1.0.0")
		Eventually(w.installed(ctx, core)).Should(Equal("v1.0.0"))
		Eventually(w.installed(ctx, docker)).Should(Equal("v1.0.0"))
		Eventually(w.item(ctx, docker)).Should(HaveKeyWithValue("version", "v1.0.0"))
	})

	It("knows what is installed, and which upgrades there are", func(ctx SpecContext) {
		Expect(w.item(ctx, docker)(Default)).To(And(
			HaveKeyWithValue("providerName", "docker"), HaveKeyWithValue("type", "InfrastructureProvider")))

		Expect(w.clusterctl(ctx, "upgrade", "plan")).To(And(
			MatchRegexp(`cluster-api +cluster-api-system +CoreProvider +v1\.0\.0 +Already up to date`),
			MatchRegexp(`infrastructure-docker +infrastructure-docker-system +InfrastructureProvider +v1\.0\.0 +v1\.1\.0`)))

		// Both have the same versions to choose from.
		Expect(load(ctx, repository, "infrastructure-docker", "v1.1.0").Prepare(ctx, w.admin)).To(Succeed())

		Expect(w.capstan(ctx, "upgrade", "plan")).To(And(
			MatchRegexp(`cluster-api +v1\.0\.0 +- +v1beta2`),
			MatchRegexp(`infrastructure-docker +v1\.0\.0 +v1\.1\.0 +v1beta2`)))
	})

	It("generates a cluster from the files of a mirror, without the name of the infrastructure", func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		out := w.capstan(ctx, "mirror", "infrastructure-docker:v1.0.0", "--source", repository, "--files", folder)
		Expect(out).To(ContainSubstring("url: " + folder + "/infrastructure-docker/v1.0.0/infrastructure-components.yaml"))

		offline := *w
		offline.config = configure(folder)
		Expect(offline.clusterctl(ctx, "generate", "cluster", "berlin", "--target-namespace", "default")).
			To(And(ContainSubstring("kind: ClusterClass"), ContainSubstring("name: berlin")))
	})

	It("prints the kubeconfig of a cluster", func(ctx SpecContext) {
		Expect(w.admin.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "berlin-kubeconfig"},
			StringData: map[string]string{"value": "kind: Config"},
		})).To(Succeed())
		Expect(w.clusterctl(ctx, "get", "kubeconfig", "berlin")).To(ContainSubstring("kind: Config"))
	})

	It("refuses to install a provider a second time", func(ctx SpecContext) {
		before := w.definitions(ctx)

		session := w.startClusterctl(ctx, "init", "--infrastructure", "docker")
		Eventually(session).Should(gexec.Exit(1))
		Expect(session.Err).To(gbytes.Say("there is already an instance"))
		Expect(w.definitions(ctx)).To(Equal(before))
	})

	// clusterctl repeats each refused request for minutes before it prints the reason, unless it is verbose.
	Describe("with the admission policy", Ordered, func() {
		BeforeAll(func(ctx SpecContext) {
			policy := filepath.Join(GinkgoT().TempDir(), "policy.yaml")
			rendered := w.run(ctx, "helm", "template", "capstan", filepath.Join(root, "charts/capstan"),
				"--show-only", "templates/protection.yaml", "--set", "admissionPolicies.protectProviders=true")
			Expect(os.WriteFile(policy, []byte(rendered), 0o600)).To(Succeed())
			w.run(ctx, "kubectl", "apply", "-f", policy)
			DeferCleanup(func(ctx SpecContext) { w.run(ctx, "kubectl", "delete", "-f", policy) })

			manager := w.deployments(ctx, docker)(Default)[0]

			Eventually(func() error { return w.admin.Delete(ctx, &manager, client.DryRunAll) }).
				Should(MatchError(ContainSubstring("which Capstan manages")))
		})

		DescribeTable("is refused", func(ctx SpecContext, command string, args ...string) {
			before := w.deployments(ctx, docker)(Default)

			session := w.startClusterctl(ctx, append(args, "--v", "5")...)
			Eventually(session.Err).Should(gbytes.Say("which Capstan manages: use .*" + command))
			session.Kill().Wait()

			Expect(w.deployments(ctx, docker)(Default)).To(Equal(before))
		},
			Entry("to remove a provider", "capstan delete", "delete", "--infrastructure", "docker"),
			Entry("to upgrade a provider", "capstan upgrade apply",
				"upgrade", "apply", "--infrastructure", "infrastructure-docker-system/docker:v1.1.0"),
		)
	})

	It("cannot upgrade a provider, and an event says what can", func(ctx SpecContext) {
		session := w.startClusterctl(ctx, "upgrade", "apply", "--infrastructure", docker.GetNamespace()+"/docker:v1.1.0")
		Eventually(w.events(ctx, docker)).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.DriftCorrectedReason),
			HaveField("Note", ContainSubstring("changed by clusterctl; to upgrade a provider that Capstan manages, use capstan "+
				"upgrade apply")))))

		Eventually(session).WithTimeout(5 * time.Minute).Should(gexec.Exit(1))

		w.expectUnharmed(ctx, docker, "v1.0.0")
	})

	It("sees an upgrade by Capstan", func(ctx SpecContext) {
		Expect(load(ctx, repository, "infrastructure-docker", "v1.1.0").Prepare(ctx, w.admin)).To(Succeed())

		Expect(bedtest.Edit(ctx, w.admin, docker, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })).To(Succeed())
		Eventually(w.installed(ctx, docker)).Should(Equal("v1.1.0"))
		Eventually(w.item(ctx, docker)).Should(HaveKeyWithValue("version", "v1.1.0"))

		Expect(w.clusterctl(ctx, "upgrade", "plan")).To(ContainSubstring("You are already up to date!"))
	})

	It("cannot remove a provider", func(ctx SpecContext) {
		definitions := w.definitions(ctx)

		Eventually(w.startClusterctl(ctx, "delete", "--infrastructure", "docker")).Should(gexec.Exit())

		w.expectUnharmed(ctx, docker, "v1.1.0")
		Expect(w.definitions(ctx)).To(Equal(definitions))
	})

	It("no longer sees a provider that Capstan has removed", func(ctx SpecContext) {
		Expect(w.admin.Delete(ctx, docker)).To(Succeed())
		Eventually(func() error { return w.admin.Get(ctx, client.ObjectKeyFromObject(docker), docker) }).
			ShouldNot(Succeed())
		Eventually(w.item(ctx, docker)).Should(BeNil())

		Expect(w.clusterctl(ctx, "upgrade", "plan")).NotTo(ContainSubstring("infrastructure-docker"))
	})

	It("installs another provider, and leaves those of Capstan alone", func(ctx SpecContext) {
		before := w.deployments(ctx, core)(Default)
		Expect(before).NotTo(BeEmpty())

		Expect(w.clusterctl(ctx, "init", "--infrastructure", "aws", "--target-namespace", "capa-system")).To(And(
			ContainSubstring(`Installing provider="infrastructure-aws"`),
			Not(ContainSubstring(`provider="cluster-api"`)), Not(ContainSubstring("kubeadm"))))

		Expect(w.deployments(ctx, core)(Default)).To(Equal(before))

		aws := v1alpha2.InfrastructureProviderType.New()
		aws.SetNamespace("capa-system")
		aws.SetName("aws")
		Expect(w.item(ctx, aws)(Default)).To(HaveKeyWithValue("metadata", Not(HaveKeyWithValue("labels",
			HaveKey(v1alpha2.ManagedByLabel)))))
	})
})

// clusterctlCommand returns a command that runs clusterctl as a user would.
func (w *world) clusterctlCommand(ctx context.Context, args ...string) *exec.Cmd {
	home := filepath.Dir(w.config)
	cmd := exec.CommandContext(ctx, clusterctlProgram, append(args, "--config", w.config, "--kubeconfig", w.kubeconfig)...)
	cmd.Env = []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "CLUSTERCTL_DISABLE_VERSIONCHECK=true"}

	return cmd
}

// clusterctl runs clusterctl, which must succeed, and returns what it prints.
func (w *world) clusterctl(ctx context.Context, args ...string) string {
	GinkgoHelper()

	output, err := w.clusterctlCommand(ctx, args...).CombinedOutput()
	GinkgoWriter.Printf("clusterctl %s:\n%s\n", strings.Join(args, " "), output)
	Expect(err).NotTo(HaveOccurred(), "clusterctl %s: %s", strings.Join(args, " "), output)

	return string(output)
}

// startClusterctl starts clusterctl, which may fail.
func (w *world) startClusterctl(ctx context.Context, args ...string) *gexec.Session {
	GinkgoHelper()

	session, err := gexec.Start(w.clusterctlCommand(ctx, args...), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait() })

	return session
}

// expectUnharmed waits until a provider is as it was installed.
func (w *world) expectUnharmed(ctx context.Context, p v1alpha2.Provider, version string) {
	GinkgoHelper()

	Eventually(w.deployments(ctx, p)).Should(ConsistOf(HaveField("Status.AvailableReplicas", BeNumerically(">", 0))))
	Eventually(w.installed(ctx, p)).Should(Equal(version))
	Eventually(w.item(ctx, p)).Should(HaveKeyWithValue("version", version))
}

// item returns a function that reads the item of a provider in the inventory; nil if there is none.
func (w *world) item(ctx context.Context, p v1alpha2.Provider) func(Gomega) map[string]any {
	return func(g Gomega) map[string]any {
		item := &unstructured.Unstructured{}
		item.SetGroupVersionKind(itemKind)

		err := w.admin.Get(ctx, client.ObjectKey{Namespace: p.GetNamespace(), Name: v1alpha2.Label(p)}, item)
		if apierrors.IsNotFound(err) {
			return nil
		}

		g.Expect(err).NotTo(HaveOccurred())

		return item.Object
	}
}

// definitions returns the UIDs of all CRDs, by name.
func (w *world) definitions(ctx context.Context) map[string]string {
	GinkgoHelper()

	list := &apiextensionsv1.CustomResourceDefinitionList{}
	Expect(w.admin.List(ctx, list)).To(Succeed())

	uids := map[string]string{}
	for _, d := range list.Items {
		uids[d.Name] = string(d.UID)
	}

	return uids
}

// deployments returns a function that reads the Deployments in a provider's namespace.
func (w *world) deployments(ctx context.Context, p v1alpha2.Provider) func(Gomega) []appsv1.Deployment {
	return func(g Gomega) []appsv1.Deployment {
		list := &appsv1.DeploymentList{}
		g.Expect(w.admin.List(ctx, list, client.InNamespace(p.GetNamespace()))).To(Succeed())

		return list.Items
	}
}

// events returns a function that reads the events about a provider.
func (w *world) events(ctx context.Context, p v1alpha2.Provider) func(Gomega) []eventsv1.Event {
	return func(g Gomega) []eventsv1.Event {
		list := &eventsv1.EventList{}
		g.Expect(w.admin.List(ctx, list, client.InNamespace(p.GetNamespace()))).To(Succeed())

		return list.Items
	}
}
