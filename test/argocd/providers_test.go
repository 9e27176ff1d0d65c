package argocd

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// member is a provider resource of the fleet in Git, in a namespace of its own.
type member struct {
	providerType v1alpha2.ProviderType
	name, spec   string
}

// fleet has a provider of each kind. Some have fields in which the API server or the operator sets others.
var fleet = []member{
	{v1alpha2.CoreProviderType, "cluster-api", "{}"},
	{v1alpha2.BootstrapProviderType, "kubeadm", "{version: v1.0.0, manager: {maxConcurrentReconciles: 5}}"},
	{v1alpha2.ControlPlaneProviderType, "kubeadm", "{version: v1.0.0}"},
	{v1alpha2.InfrastructureProviderType, "docker", "{version: v1.0.0}"},
	{v1alpha2.IPAMProviderType, "in-cluster", "{version: ~1.0}"},
	{v1alpha2.RuntimeExtensionProviderType, "nutanix", "{version: v1.0.0}"},
	{v1alpha2.AddonProviderType, "helm", "{version: v1.0.0}"},
}

var docker = fleet[3]

func (m member) label() string     { return m.providerType.Label(m.name) }
func (m member) namespace() string { return m.label() + "-system" }
func (m member) file() string      { return "providers/" + m.label() + ".yaml" }

func (m member) namespaceYAML() string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", m.namespace())
}

// yaml returns the namespace and the resource with a spec.
func (m member) yaml(spec string) string {
	return fmt.Sprintf("%s---\napiVersion: operator.cluster.x-k8s.io/v1alpha2\nkind: %s\n"+
		"metadata: {name: %s, namespace: %s}\nspec: %s\n",
		m.namespaceYAML(), m.providerType.GroupVersionKind().Kind, m.name, m.namespace(), spec)
}

// resource returns the provider resource in the cluster.
func (m member) resource(ctx context.Context) v1alpha2.Provider {
	GinkgoHelper()

	p := m.providerType.New()
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: m.namespace(), Name: m.name}, p)).To(Succeed())

	return p
}

var _ = Describe("Provider resources", Ordered, func() {
	const app = "providers"

	var (
		git      *repository
		upgraded string // the commit that has upgraded docker
	)

	manager := client.ObjectKey{Namespace: docker.namespace(), Name: "capd-controller-manager"}

	// change commits the spec of docker and makes Argo CD read it.
	change := func(ctx context.Context, spec string) {
		GinkgoHelper()
		git.commit(ctx, map[string]string{docker.file(): docker.yaml(spec)})
		refresh(ctx, app, false)
	}

	BeforeAll(func(ctx SpecContext) {
		startWorld(ctx)
		Expect(harness.InstallCRDs(ctx, admin)).To(Succeed())
		pushFleet(ctx)

		git = newRepository(ctx)

		files := map[string]string{}
		for _, m := range fleet {
			files[m.file()] = m.yaml(m.spec)
		}

		git.commit(ctx, files)
	})

	stop := func() {}

	AfterAll(func() { stop() })

	It("are Progressing before the operator has seen them, without differences", func(ctx SpecContext) {
		apply(ctx, documented("gitops.md", "Argo CD", "https://git.example.com/fleet.git", git.url)[1])
		Eventually(read(ctx, app)).Should(is(synced, progressing))

		now := read(ctx, app)(Default)
		for _, m := range fleet {
			Expect(now.healthOf(m)).To(Equal(health{progressing, "waiting for the operator"}))
		}
	})

	It("are Healthy when all of them are Ready, not before", func(ctx SpecContext) {
		stop = startOperator()

		Eventually(read(ctx, app)).Should(is(synced, healthy))

		since := transition(ctx, app)

		for _, m := range fleet {
			p := m.resource(ctx)
			ready := conditions.Get(p, v1alpha2.ReadyCondition)
			Expect(ready).To(HaveField("Status", metav1.ConditionTrue))
			Expect(since).NotTo(BeTemporally("<", ready.LastTransitionTime.Time), "%s was not Ready yet", m.name)
			Expect(read(ctx, app)(Default).healthOf(m).Message).To(Equal(ready.Message))
		}
	})

	It("remain as they are, with all the defaults that are not in Git", func(ctx SpecContext) {
		Expect(fleet[0].resource(ctx).GetSpec().Version).To(Equal("v1.0.0"), "the operator has set it")
		Expect(fleet[1].resource(ctx).GetSpec().Manager.Verbosity).NotTo(BeNil(), "the API server has set it")
		expectNoWrites(ctx, app)
	})

	It("are all that Argo CD considers its own, without what the operator installs", func(ctx SpecContext) {
		var own []string
		for _, m := range fleet {
			own = append(own, "Namespace /"+m.namespace(),
				m.providerType.GroupVersionKind().Kind+" "+m.namespace()+"/"+m.name)
		}

		Expect(claimed(ctx, app)).To(ConsistOf(own))
		Expect(read(ctx, app)(Default).Resources).To(HaveLen(len(own)))
		Expect(running(ctx, manager)).To(Equal("v1.0.0"))
	})

	It("are upgraded by a commit", func(ctx SpecContext) {
		change(ctx, "{version: v1.1.0}")

		upgraded = git.head(ctx)
		Eventually(read(ctx, app)).Should(And(is(synced, healthy), HaveField("Sync.Revision", upgraded)))
		Expect(docker.resource(ctx)).To(HaveField("Status.InstalledVersion", HaveValue(Equal("v1.1.0"))))
		Expect(running(ctx, manager)).To(Equal("v1.1.0"))
		expectNoWrites(ctx, app)
	})

	It("are Degraded, with the operator's message, if an upgrade fails", func(ctx SpecContext) {
		change(ctx, "{version: v1.1.1, release: {timeout: 3s, retries: 0}}")
		Eventually(read(ctx, app)).Should(is(synced, degraded))
		Eventually(func(g Gomega) {
			refresh(ctx, app, false) // by default, Argo CD ignores changes of the message alone

			message := read(ctx, app)(g).healthOf(docker).Message
			g.Expect(message).To(And(ContainSubstring("v1.1.1"), ContainSubstring("v1.1.0 runs again")))
			g.Expect(message).To(Equal(conditions.GetMessage(docker.resource(ctx), v1alpha2.ReadyCondition)))
		}).Should(Succeed())
		Expect(running(ctx, manager)).To(Equal("v1.1.0"))
		expectNoWrites(ctx, app)
	})

	It("are Healthy again after the commit is reverted", func(ctx SpecContext) {
		git.revert(ctx, "HEAD")
		refresh(ctx, app, false)
		Eventually(read(ctx, app)).Should(And(is(synced, healthy), HaveField("Sync.Revision", git.head(ctx))))
		Expect(docker.resource(ctx)).To(HaveField("Status.InstalledVersion", HaveValue(Equal("v1.1.0"))))
	})

	It("return to the former version if the commit with the upgrade is reverted", func(ctx SpecContext) {
		git.revert(ctx, upgraded)
		refresh(ctx, app, false)
		Eventually(read(ctx, app)).Should(And(is(synced, healthy), HaveField("Sync.Revision", git.head(ctx))))
		Expect(running(ctx, manager)).To(Equal("v1.0.0"))
	})

	It("are Degraded if the version does not exist", func(ctx SpecContext) {
		change(ctx, "{version: v1.9.9}")
		Eventually(read(ctx, app)).Should(is(synced, degraded))
		Expect(read(ctx, app)(Default).healthOf(docker).Message).To(ContainSubstring("v1.9.9"))
		git.revert(ctx, "HEAD")
		refresh(ctx, app, false)
		Eventually(read(ctx, app)).Should(is(synced, healthy))
	})

	It("are Suspended while they are paused", func(ctx SpecContext) {
		change(ctx, "{version: v1.0.0, paused: true}")
		Eventually(read(ctx, app)).Should(is(synced, suspended))
		expectNoWrites(ctx, app)
		git.revert(ctx, "HEAD")
		refresh(ctx, app, false)
		Eventually(read(ctx, app)).Should(is(synced, healthy))
	})

	It("are set back if their spec is changed in the cluster", func(ctx SpecContext) {
		Expect(bedtest.Edit(ctx, admin, docker.resource(ctx), func(p v1alpha2.Provider) {
			p.GetSpec().Version = "v1.1.0"
		})).To(Succeed())
		Eventually(func() string { return docker.resource(ctx).GetSpec().Version }).Should(Equal("v1.0.0"))
		Eventually(read(ctx, app)).Should(is(synced, healthy))
	})

	It("are removed from the cluster when they are removed from Git, unless they are in use", func(ctx SpecContext) {
		Expect(admin.Patch(ctx, newApplication(app), client.RawPatch(types.MergePatchType,
			[]byte(`{"spec":{"syncPolicy":{"automated":{"prune":true}}}}`)))).To(Succeed())

		machine := newMachine()
		Expect(admin.Create(ctx, machine)).To(Succeed())
		git.commit(ctx, map[string]string{docker.file(): docker.namespaceYAML()})
		refresh(ctx, app, false)

		Eventually(func() string {
			return conditions.GetReason(docker.resource(ctx), v1alpha2.ReadyCondition)
		}).Should(Equal(v1alpha2.DeletionBlockedReason))
		Expect(running(ctx, manager)).To(Equal("v1.0.0"))

		Expect(admin.Delete(ctx, machine)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, manager, &appsv1.Deployment{}))
		}).Should(BeTrue())
		Eventually(read(ctx, app)).Should(And(is(synced, healthy), HaveField("Sync.Revision", git.head(ctx))))
		Expect(definition(ctx, dockerMachines).DeletionTimestamp).To(BeNil())
	})

	It("are removed with the Application, core last", func(ctx SpecContext) {
		remove(ctx, app)

		for _, m := range fleet {
			p := m.providerType.New()

			Eventually(func() bool {
				return apierrors.IsNotFound(admin.Get(ctx, types.NamespacedName{Namespace: m.namespace(), Name: m.name}, p))
			}).Should(BeTrue())
		}
	})
})

// pushFleet pushes the charts of the fleet, and some versions of docker, of which the last fits on no node.
func pushFleet(ctx context.Context) {
	GinkgoHelper()

	for _, wanted := range []harness.Wanted{
		{Label: "cluster-api", Version: "v1.0.0"},
		{Label: "bootstrap-kubeadm", Version: "v1.0.0"},
		{Label: "control-plane-kubeadm", Version: "v1.0.0"},
		{Label: docker.label(), Version: "v1.0.0"},
		{Label: docker.label(), Version: "v1.1.0"},
	} {
		push(ctx, wanted.Label, wanted.Version, nil)
	}

	release, err := harness.Load(ctx, samples, harness.Wanted{Label: docker.label(), Version: "v1.1.0"})
	Expect(err).NotTo(HaveOccurred())

	release.Bundle.Version = "v1.1.1"
	release.Bundle.Components = []byte(strings.Replace(string(release.Bundle.Components),
		"      containers:", "      nodeSelector: {no: such-node}\n      containers:", 1))
	Expect(harness.PushChart(ctx, registry, release)).To(Succeed())

	for _, m := range fleet[4:] {
		key := types.NamespacedName{Namespace: m.namespace(), Name: m.name}
		object := strings.ReplaceAll(m.name, "-", "")
		Expect(harness.PushChart(ctx, registry, harness.Small(m.providerType, key, object, "v1.0.0"))).To(Succeed())
	}
}

// transition returns since when an Application has its health.
func transition(ctx context.Context, name string) time.Time {
	GinkgoHelper()

	app := newApplication(name)
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(app), app)).To(Succeed())
	text, _, err := unstructured.NestedString(app.Object, "status", "health", "lastTransitionTime")
	Expect(err).NotTo(HaveOccurred())
	since, err := time.Parse(time.RFC3339, text)
	Expect(err).NotTo(HaveOccurred())

	return since
}

// running returns the version of a manager's image.
func running(ctx context.Context, deployment client.ObjectKey) string {
	GinkgoHelper()

	live := &appsv1.Deployment{}
	Expect(admin.Get(ctx, deployment, live)).To(Succeed())

	image := live.Spec.Template.Spec.Containers[0].Image

	return image[strings.LastIndex(image, ":")+1:]
}
