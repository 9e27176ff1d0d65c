package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/harness"
)

// clusterctl runs the released clusterctl in a world, with the providers of a local repository.
type clusterctl struct {
	w               *world
	program, config string
}

// newClusterctl configures clusterctl for the providers with these labels.
func newClusterctl(ctx context.Context, w *world, repository string, labels ...string) clusterctl {
	GinkgoHelper()

	set, err := tools.Find()
	Expect(err).NotTo(HaveOccurred())
	Expect(set.WithClusterctl().Build(ctx, GinkgoWriter)).To(Succeed())

	return clusterctl{w, set.Program(tools.Clusterctl), clusterctlConfig(repository, labels...)}
}

// clusterctlConfig writes a configuration of clusterctl with providers from a local repository, and returns its path.
func clusterctlConfig(repository string, labels ...string) string {
	GinkgoHelper()

	folder, err := filepath.Abs(repository)
	Expect(err).NotTo(HaveOccurred())

	var content strings.Builder

	content.WriteString("providers:\n")

	for _, label := range labels {
		kind, name := v1alpha2.ParseLabel(label)
		fmt.Fprintf(&content, "- {name: %s, type: %s, url: %q}\n", name, kind,
			filepath.Join(folder, label, "latest", kind.ComponentsFile()))
	}

	file := filepath.Join(GinkgoT().TempDir(), "clusterctl.yaml")
	Expect(os.WriteFile(file, []byte(content.String()), 0o600)).To(Succeed())

	return file
}

// withVariables writes a copy of a configuration that has variables as well, and returns its path.
func withVariables(config string, variables []string) string {
	GinkgoHelper()

	content, err := os.ReadFile(config)
	Expect(err).NotTo(HaveOccurred())

	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		content = fmt.Appendf(content, "%s: %q\n", name, value)
	}

	file := filepath.Join(GinkgoT().TempDir(), "clusterctl.yaml")
	Expect(os.WriteFile(file, content, 0o600)).To(Succeed())

	return file
}

// run runs clusterctl with additional variables, and returns what it prints.
func (c clusterctl) run(ctx context.Context, variables []string, args ...string) string {
	GinkgoHelper()

	home := filepath.Dir(c.config)
	cmd := exec.CommandContext(ctx, c.program, append(args, "--config", c.config, "--kubeconfig", c.w.bed.Kubeconfig())...)
	cmd.Env = slices.Concat(variables, []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "CLUSTERCTL_DISABLE_VERSIONCHECK=true",
	})

	output, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))

	return string(output)
}

// identities returns the identities of all objects of providers and of all pods.
func (w *world) identities(ctx context.Context) map[string]string {
	GinkgoHelper()
	return must(harness.Identities(ctx, w.client))
}

// identitiesOf returns those whose names contain that of a tiny provider.
func (w *world) identitiesOf(ctx context.Context, name string) map[string]string {
	GinkgoHelper()

	all := w.identities(ctx)
	maps.DeleteFunc(all, func(object, _ string) bool { return !strings.Contains(object, name) })
	Expect(all).NotTo(BeEmpty())

	return all
}

var _ = Describe("capstan adopt takes the providers of clusterctl over", Ordered, func() {
	var (
		w   *world
		cli commandLine
		// config has the variables that the providers were installed with, and forgotten has none.
		config, forgotten string
		before            map[string]string
	)

	credentials := harness.AWSVariables["AWS_B64ENCODED_CREDENTIALS"]
	labels := []string{
		"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-docker", "infrastructure-aws",
	}

	BeforeAll(func(ctx SpecContext) {
		w = newWorld()
		cli = newCommandLine(w)
		w.createOperatorDeployment(ctx)

		clusterctl := newClusterctl(ctx, w, samples, labels...)
		variables := []string{"AWS_B64ENCODED_CREDENTIALS=" + credentials, "EXP_MACHINE_POOL=false"}
		clusterctl.run(ctx, variables, "init", "--core=cluster-api:v1.0.0", "--bootstrap=kubeadm:v1.0.0",
			"--control-plane=kubeadm:v1.0.0", "--infrastructure=docker:v1.0.0,aws:v1.0.0")

		config, forgotten = withVariables(clusterctl.config, variables), clusterctl.config
		w.start("--config=" + config)

		for _, label := range labels {
			Eventually(w.managerOf(ctx, label)).Should(HaveField("Status.AvailableReplicas", BeNumerically("==", 1)))
		}

		before = w.identities(ctx)
	})

	It("names the variables that it needs", func(ctx SpecContext) {
		cli.fail(ctx, "adopt", "--config", forgotten).To(HavePrefix("Error: nothing was changed, because required " +
			"variables have no value: AWS_B64ENCODED_CREDENTIALS of infrastructure-aws; set them in the environment or in "))
		Expect(cli.writes()).To(BeZero())
	})

	It("shows what it would do, and changes nothing", func(ctx SpecContext) {
		out := cli.succeed(ctx, "adopt", "--dry-run", "--config", config)
		Expect(out).To(And(
			HavePrefix("5 providers installed by clusterctl\n"),
			ContainSubstring("\nCoreProvider capi-system/cluster-api v1.0.0\n"),
			ContainSubstring("\nInfrastructureProvider capa-system/aws v1.0.0\n"+
				"  variable AWS_B64ENCODED_CREDENTIALS: from configuration file\n"),
			MatchRegexp(`\nInfrastructureProvider capd-system/docker v1\.0\.0\n`+
				`  variable EXP_MACHINE_POOL: from configuration file\n(  .* with defaults: .*\n)?`+
				`  no changes; 12 objects get the label and annotations of Helm releases, and `+
				`2 CustomResourceDefinitions those of Capstan\n`),
			Not(ContainSubstring("would be")),
			Not(ContainSubstring(credentials)),
		))
		Expect(strings.Count(out, "  no changes; ")).To(Equal(5))

		out = cli.succeed(ctx, "adopt", "aws", "--output", "yaml", "--config", config)
		Expect(out).To(Equal(`---
# Secret infrastructure-aws-variables holds values of variables in clear text: encrypt it before it gets into Git.
apiVersion: v1
kind: Secret
metadata:
  name: infrastructure-aws-variables
  namespace: capa-system
stringData:
  AWS_B64ENCODED_CREDENTIALS: ` + credentials + `
---
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: InfrastructureProvider
metadata:
  name: aws
  namespace: capa-system
spec:
  secretName: infrastructure-aws-variables
  version: v1.0.0
`))

		Expect(cli.writes()).To(BeZero())
		Expect(w.identities(ctx)).To(Equal(before))
	})

	It("shows the fields of CRDs that it changes", func(ctx SpecContext) {
		const name = "dockerclusters.infrastructure.cluster.x-k8s.io"

		describe := func(text string) {
			GinkgoHelper()
			w.editDefinition(ctx, name, func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = text
			})
		}

		published := w.definition(ctx, name).Spec.Versions[0].Schema.OpenAPIV3Schema.Description

		describe("Edited.")
		Expect(cli.succeed(ctx, "adopt", "--dry-run", "docker", "--config", config)).To(MatchRegexp(
			`\n  CustomResourceDefinition ` + name + ` would be changed: /spec/versions/0/\S*description\n` +
				`  1 object to change or to create; `))
		describe(published)

		before = w.identities(ctx)
	})

	It("refuses to change pods and Secrets", func(ctx SpecContext) {
		cli.fail(ctx, "adopt", "docker", "--config", forgotten).To(ContainSubstring("nothing was changed, because the " +
			"adoption would recreate, restart or change the content of Deployment capd-system/capd-controller-manager, as "))

		other := withVariables(forgotten, []string{"AWS_B64ENCODED_CREDENTIALS=b3RoZXI="})
		cli.fail(ctx, "adopt", "aws", "--config", other).To(
			ContainSubstring("content of Secret capa-system/capa-manager-bootstrap-credentials, as shown above"))
		Expect(cli.writes()).To(BeZero())
	})

	It("refuses to recreate objects", func(ctx SpecContext) {
		binding := &rbacv1.ClusterRoleBinding{}
		Expect(w.client.Get(ctx, client.ObjectKey{Name: "capd-manager-rolebinding"}, binding)).To(Succeed())

		refer := func(role string) {
			GinkgoHelper()
			Expect(w.client.Delete(ctx, binding)).To(Succeed())

			binding.UID, binding.ResourceVersion, binding.RoleRef.Name = "", "", role
			Expect(w.client.Create(ctx, binding)).To(Succeed())
		}

		published := binding.RoleRef.Name

		refer("view")
		Expect(cli.succeed(ctx, "adopt", "--dry-run", "docker", "--config", config)).To(MatchRegexp(
			`\n  ClusterRoleBinding capd-manager-rolebinding would be deleted and recreated: .*cannot change roleRef`))
		cli.fail(ctx, "adopt", "docker", "--config", config).To(ContainSubstring(
			"would recreate, restart or change the content of ClusterRoleBinding capd-manager-rolebinding, as shown above"))
		Expect(cli.writes()).To(BeZero())
		refer(published)

		before = w.identities(ctx)
	})

	It("keeps all objects and pods", func(ctx SpecContext) {
		Expect(cli.succeed(ctx, "adopt", "--config", config)).To(And(
			ContainSubstring("\nInfrastructureProvider capa-system/aws created\n"),
			ContainSubstring("\nInfrastructureProvider capd-system/docker: v1.0.0 is healthy (")))

		Expect(w.identities(ctx)).To(Equal(before))

		secret := &corev1.Secret{}
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: "capa-system", Name: "infrastructure-aws-variables"}, secret)).
			To(Succeed())
		Expect(secret.Data).To(Equal(map[string][]byte{
			"AWS_B64ENCODED_CREDENTIALS": []byte(credentials),
		}))
	})

	It("is reported by an event and in the history", func(ctx SpecContext) {
		Expect(cli.succeed(ctx, "history", "docker")).To(MatchRegexp(
			`1 +\S+ +deployed +yes +v1\.0\.0 +capstan +12 objects adopted from v1\.0\.0 +` +
				`\w{12} +Install complete; adopted 12 existing objects\n$`))

		events := &eventsv1.EventList{}
		Expect(w.client.List(ctx, events, client.InNamespace("capd-system"))).To(Succeed())
		Expect(events.Items).To(ContainElement(And(
			HaveField("Reason", v1alpha2.AdoptedReason),
			HaveField("Regarding.Name", "docker"),
			HaveField("Note", And(HavePrefix("Adopted 12 objects that existed: "), HaveSuffix(" and 7 more"))))))
	})

	It("can be repeated", func(ctx SpecContext) {
		kept := client.MatchingLabels{v1alpha2.ManagedByLabel: v1alpha2.FieldOwner}
		items := &metav1.PartialObjectMetadataList{}
		items.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("ProviderList"))
		Eventually(func(g Gomega) {
			g.Expect(w.client.List(ctx, items, kept)).To(Succeed())
			g.Expect(items.Items).To(HaveLen(len(labels)))
		}).Should(Succeed())

		nothing := Equal("Nothing to adopt: Capstan manages what is in clusterctl's inventory\n")
		Expect(cli.succeed(ctx, "adopt", "--config", config)).To(nothing)
		Expect(cli.succeed(ctx, "adopt", "docker", "--config", config)).To(nothing)
		cli.fail(ctx, "adopt", "infrastructure-gcp", "--config", config).To(
			HavePrefix("Error: provider infrastructure-gcp not found; the existing ones are: "))
		Expect(w.identities(ctx)).To(Equal(before))
	})

	It("stays installed without its resource, and is clusterctl's again", func(ctx SpecContext) {
		w.letGo(ctx, &v1alpha2.InfrastructureProvider{ObjectMeta: named("capd-system", "docker")})
		Expect(w.identities(ctx)).To(Equal(before))
		Expect(w.helm(ctx, "helm", "list", "-n", "capd-system")).To(BeEmpty())

		manager := w.managerOf(ctx, "infrastructure-docker")(Default)
		Expect(manager.Labels).NotTo(HaveKey("app.kubernetes.io/managed-by"))
		Expect(manager.Annotations).NotTo(HaveKey(HavePrefix("meta.helm.sh/")))

		definitions := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(w.client.List(ctx, definitions, client.MatchingLabels{
			v1alpha2.ClusterctlProviderLabel: "infrastructure-docker",
		})).To(Succeed())
		Expect(definitions.Items).To(HaveLen(2))
		Expect(definitions.Items).To(HaveEach(HaveField("Annotations", Not(HaveKey(HavePrefix("capstan.dev/"))))))

		Eventually(func() map[string]string {
			return w.itemOf(ctx, "capd-system", "infrastructure-docker").GetLabels()
		}).Should(Equal(map[string]string{
			"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/core": "inventory",
			"cluster.x-k8s.io/provider": "infrastructure-docker",
		}))

		item := w.itemOf(ctx, "capd-system", "infrastructure-docker")
		Expect(item.Object).To(And(HaveKeyWithValue("version", "v1.0.0"), HaveKeyWithValue("providerName", "docker")))
		Expect(item.GetAnnotations()).To(BeEmpty())
	})

	It("adopts it again", func(ctx SpecContext) {
		Expect(cli.succeed(ctx, "adopt", "docker", "--config", config)).To(And(
			HavePrefix("1 provider installed by clusterctl\n"),
			ContainSubstring("\nInfrastructureProvider capd-system/docker created\n"),
			MatchRegexp(`docker: v1\.0\.0 is healthy \(\S+s\)\n$`)))
		Expect(w.identities(ctx)).To(Equal(before))
	})

	It("changes pods if a user confirms it", func(ctx SpecContext) {
		w.letGo(ctx, &v1alpha2.InfrastructureProvider{ObjectMeta: named("capd-system", "docker")})
		Eventually(func() map[string]string {
			return w.itemOf(ctx, "capd-system", "infrastructure-docker").GetLabels()
		}).ShouldNot(HaveKey(v1alpha2.ManagedByLabel))

		cli.succeed(ctx, "adopt", "docker", "--config", forgotten, "--yes")
		Expect(w.managerOf(ctx, "infrastructure-docker")(Default).Spec.Template.Spec.Containers).To(ContainElement(
			HaveField("Args", ContainElement("--feature-gates=MachinePool=true"))))
	})
})

// letGo removes a resource, and keeps what is installed, as the documentation says.
func (w *world) letGo(ctx context.Context, p v1alpha2.Provider) {
	GinkgoHelper()

	resource := []string{strings.ToLower(string(p.ProviderType())), p.GetName(), "--namespace", p.GetNamespace()}
	w.run(ctx, "kubectl", append([]string{"annotate"}, append(resource, "capstan.dev/keep-installed=true")...)...)
	w.run(ctx, "kubectl", append([]string{"delete"}, resource...)...)
}

// itemOf returns the item of a provider in clusterctl's inventory.
func (w *world) itemOf(ctx context.Context, namespace, label string) *unstructured.Unstructured {
	GinkgoHelper()

	item := &unstructured.Unstructured{}
	item.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("Provider"))
	Expect(w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: label}, item)).To(Succeed())

	return item
}

// awaitItem waits until clusterctl's inventory has the installed version of a provider, which is written last.
func (w *world) awaitItem(ctx context.Context, p v1alpha2.Provider) {
	GinkgoHelper()

	item := &unstructured.Unstructured{}
	item.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("Provider"))

	key := client.ObjectKey{Namespace: p.GetNamespace(), Name: v1alpha2.Label(p)}
	Eventually(func() (map[string]any, error) { return item.Object, w.client.Get(ctx, key, item) }).
		Should(HaveKeyWithValue("version", *p.GetStatus().InstalledVersion))
}

// managerOf returns a function that reads the Deployment of a provider.
func (w *world) managerOf(ctx context.Context, label string) func(Gomega) appsv1.Deployment {
	return func(g Gomega) appsv1.Deployment {
		list := &appsv1.DeploymentList{}
		g.Expect(w.client.List(ctx, list, client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: label})).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))

		return list.Items[0]
	}
}
