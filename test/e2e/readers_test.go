package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// createViewRole creates the role of the operator's chart that extends the role view.
func (w *world) createViewRole(ctx context.Context) {
	GinkgoHelper()

	manifests := must(os.ReadFile(filepath.Join(root, "config", "default", "operator.yaml")))

	for manifest := range strings.SplitSeq(string(manifests), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		if yaml.Unmarshal([]byte(manifest), role) != nil || role.Labels["rbac.authorization.k8s.io/aggregate-to-view"] == "" {
			continue
		}

		Expect(w.client.Create(ctx, role)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, role)).To(Succeed()) })

		return
	}

	Fail("no role extends the role view")
}

// bind binds a role to a user: in a namespace, or in the cluster if that is empty.
func (w *world) bind(ctx context.Context, user, namespace, kind, role string) {
	GinkgoHelper()

	meta := metav1.ObjectMeta{Namespace: namespace, Name: user + "-" + role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}

	if namespace != "" {
		Expect(w.client.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects})).To(
			Succeed())

		return
	}

	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects}
	Expect(w.client.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, binding)).To(Succeed()) })
}

// newReadRule allows to get and list a resource.
func newReadRule(group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "list"}}
}

var _ = Describe("A user who may only read", Ordered, func() {
	const token = "s3cr3t-t0ken"

	var (
		w    *world
		cli  commandLine
		tiny = newTiny("shown", "v1.0.0")
	)

	// as runs a command with the permissions of a user, and returns its output and warnings.
	as := func(ctx context.Context, user string, args ...string) (out, warnings string) {
		GinkgoHelper()

		out, warnings, code := cli.run(ctx, append(args, "--as", user)...)
		Expect(code).To(BeZero(), "%s\n%s", out, warnings)
		Expect(out).NotTo(ContainSubstring(token))

		return out, warnings
	}

	// secretsReadBy returns the namespaces of the Secrets that a user has asked for.
	secretsReadBy := func(user string) []string {
		GinkgoHelper()

		requests, err := w.bed.Requests(func(r bed.Request) bool { return r.User == user && r.Resource == "secrets" })
		Expect(err).NotTo(HaveOccurred())

		var namespaces []string
		for _, r := range requests {
			namespaces = append(namespaces, r.Namespace)
		}

		return namespaces
	}

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		cli = newCommandLine(w)
		w.createOperatorDeployment(ctx)
		w.createViewRole(ctx)
		w.bind(ctx, "viewer", "", "ClusterRole", "view")

		tiny.components = strings.Replace(tiny.components, `args: ["--level=${TINY_LEVEL:=info}"]`, `args:
        - --level=${TINY_LEVEL:=info}
        - --token=${TINY_TOKEN}`, 1) + `        resources: {requests: {memory: 1024Mi, cpu: 0.1}}
        ports: [{name: metrics, containerPort: 8080}]
---
apiVersion: v1
kind: Secret
metadata: {name: shown-credentials, namespace: shown-system}
stringData: {token: "${TINY_TOKEN}"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shown-manager}
rules: [{apiGroups: [""], resources: [events], verbs: [create]}]
`
		newer := tiny
		newer.version = "v1.1.0"
		newer.components = strings.NewReplacer(
			"shown:v1.0.0", "shown:v1.1.0",
			"        - --token=", "        - --new-flag=on\n        - --token=",
			"preserve-unknown-fields: true}}", "preserve-unknown-fields: true, description: new}}",
			"verbs: [create]", "verbs: [create, patch]",
		).Replace(tiny.components)

		p := tiny.resource()
		p.Spec.SecretName = "variables"
		p.Spec.Variables = map[string]string{"TINY_LEVEL": "debug"}

		Expect(w.client.Create(ctx, tiny.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: tiny.name, Name: "variables"},
			StringData: map[string]string{"TINY_TOKEN": token},
		})).To(Succeed())
		Expect(w.client.Create(ctx, tiny.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, newer.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		// The role view gets the rules of the chart's role a moment later.
		Eventually(func() string {
			_, failure, _ := cli.run(ctx, "status", "--as", "viewer")
			return failure
		}).Should(BeEmpty())
	})

	It("sees the status and the history, with the role view", func(ctx SpecContext) {
		out, warnings := as(ctx, "viewer", "status", "shown")
		Expect(warnings).To(BeEmpty())
		Expect(out).To(And(
			HavePrefix("infrastructure-shown: v1.0.0 is healthy\n"),
			ContainSubstring("release infrastructure-shown, revision 1, deployed: 2 of 2 objects healthy, besides those that "+
				"you may not get: ClusterRole, Secret"),
			ContainSubstring("registry.example.com/shown:v1.0.0"),
			ContainSubstring("TINY_LEVEL from spec.variables"),
			ContainSubstring("1 CRD"),
			ContainSubstring("ago: Healthy"),
			ContainSubstring("unknown: variables: those in Secret shown/variables, which you may not get"),
		))

		// The age may be another one a moment later.
		newest := func(history string) string {
			return regexp.MustCompile(` +\d+s +`).ReplaceAllString(strings.Split(history, "\n")[1], " ")
		}

		admin := newest(cli.succeed(ctx, "history", "shown"))
		out, warnings = as(ctx, "viewer", "history", "shown")
		Expect(warnings).To(BeEmpty())
		Expect(admin).To(HavePrefix(strings.TrimSpace(newest(out))), "all but Helm's description")

		out, _ = as(ctx, "viewer", "status", "--output", "tree")
		Expect(out).To(And(ContainSubstring("infrastructure-shown: v1.0.0"), ContainSubstring("cluster-api: v1.0.0")))
	})

	It("sees differences of what is not secret, with the role view", func(ctx SpecContext) {
		const compared = "Warning: what the resource asks for is compared, not what is installed, because you may not list " +
			"secrets in namespace shown; unknown are variables in Secrets"

		out, warnings := as(ctx, "viewer", "diff", "shown")
		Expect(out).To(Equal("infrastructure-shown: no changes\n"))
		Expect(warnings).To(HavePrefix(compared))
		Expect(strings.Count(warnings, "\n")).To(Equal(1), "one line: %s", warnings)

		out, warnings = as(ctx, "viewer", "diff", "shown", "--version", "v1.1.0")
		Expect(out).To(And(
			ContainSubstring("-        image: registry.example.com/shown:v1.0.0\n"+
				"+        image: registry.example.com/shown:v1.1.0\n"),
			ContainSubstring("+        - --new-flag=on\n"),
			ContainSubstring("CustomResourceDefinition "+tiny.crd()+" would be changed"),
			ContainSubstring("infrastructure-shown v1.0.0 to v1.1.0: 0 objects to create, 2 to change, 0 to delete"),
			ContainSubstring("ClusterRole shown-manager would be changed"),
		))
		Expect(strings.Count(out, "\n-")+strings.Count(out, "\n+")).To(Equal(4), "nothing else: %s", out)
		Expect(warnings).To(HavePrefix(compared))

		By("comparing what is not applied yet")

		file := filepath.Join(GinkgoT().TempDir(), "shown.yaml")
		changed := tiny.resource()
		changed.Spec.SecretName = "variables"
		changed.Spec.Variables = map[string]string{"TINY_LEVEL": "warning"}
		changed.SetGroupVersionKind(v1alpha2.InfrastructureProviderType.GroupVersionKind())
		Expect(os.WriteFile(file, must(yaml.Marshal(changed)), 0o600)).To(Succeed())

		out, _ = as(ctx, "viewer", "diff", "-f", file)
		Expect(out).To(ContainSubstring("-        - --level=<masked TINY_LEVEL>\n+        - --level=warning\n"))

		cli.fail(ctx, "diff", "shown", "--revision", "1", "--as", "viewer").To(ContainSubstring("secrets is forbidden"))
	})

	It("sees one kind in one namespace, and a warning of the others", func(ctx SpecContext) {
		Expect(w.client.Create(ctx, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: tiny.name, Name: "one-kind"},
			Rules:      []rbacv1.PolicyRule{newReadRule(v1alpha2.GroupVersion.Group, "infrastructureproviders")},
		})).To(Succeed())
		w.bind(ctx, "tina", tiny.name, "Role", "one-kind")

		out, warnings := as(ctx, "tina", "status", "-n", tiny.name)
		Expect(out).To(ContainSubstring("infrastructure-shown"))
		Expect(warnings).To(Equal("Warning: left out, because you may not list them: CoreProvider, BootstrapProvider, " +
			"ControlPlaneProvider, IPAMProvider, RuntimeExtensionProvider, AddonProvider\n"))

		out, warnings = as(ctx, "tina", "status", "shown", "-n", tiny.name)
		Expect(out).To(ContainSubstring("infrastructure-shown: v1.0.0 is healthy"))
		Expect(warnings).To(BeEmpty())

		cli.fail(ctx, "status", "docker", "-n", tiny.name, "--as", "tina").To(ContainSubstring("list CoreProvider resources"))
	})

	It("compares all with Secrets of the provider's namespace, and needs none of the operator's", func(ctx SpecContext) {
		Expect(w.client.Create(ctx, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: tiny.name, Name: "secrets"},
			Rules:      []rbacv1.PolicyRule{newReadRule("", "secrets")},
		})).To(Succeed())
		objects := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "shown-objects"},
			Rules: []rbacv1.PolicyRule{
				newReadRule(rbacv1.GroupName, "clusterroles"), newReadRule("infrastructure.cluster.x-k8s.io", tiny.plural()),
			},
		}
		Expect(w.client.Create(ctx, objects)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, objects)).To(Succeed()) })
		w.bind(ctx, "editor", "", "ClusterRole", "view")
		w.bind(ctx, "editor", "", "ClusterRole", objects.Name)
		w.bind(ctx, "editor", tiny.name, "Role", "secrets")

		out, warnings := as(ctx, "editor", "diff", "shown", "--version", "v1.1.0")
		Expect(warnings).To(BeEmpty())
		Expect(out).To(And(ContainSubstring("ClusterRole shown-manager would be changed"), ContainSubstring("+  - patch\n")))

		out, warnings = as(ctx, "editor", "permissions", "shown", "--service-account", "installer")
		Expect(warnings).To(BeEmpty())
		Expect(out).To(ContainSubstring("shown-manager"))

		By("keeping the installed values of variables that only the operator knows")

		config := &controllers.Config{}
		Expect(config.Set(map[string]string{"variables-from-environment": "TINY_LEVEL"})).To(BeEmpty())
		publisher := &controllers.Publisher{Client: w.client, Namespace: harness.OperatorNamespace, Config: config}
		Expect(publisher.Publish(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { w.publishConfig(ctx, harness.OperatorNamespace) })

		withoutLevel := tiny.resource()
		withoutLevel.Spec.SecretName = "variables"
		withoutLevel.SetGroupVersionKind(v1alpha2.InfrastructureProviderType.GroupVersionKind())

		file := filepath.Join(GinkgoT().TempDir(), "shown.yaml")
		Expect(os.WriteFile(file, must(yaml.Marshal(withoutLevel)), 0o600)).To(Succeed())

		out, warnings = as(ctx, "editor", "diff", "-f", file)
		Expect(out).To(Equal("infrastructure-shown: no changes\n"))
		Expect(warnings).To(Equal("Warning: not known here, and left out: the operator's variables TINY_LEVEL where they " +
			"are not installed yet\n"))

		Expect(secretsReadBy("editor")).To(And(ContainElement(tiny.name), HaveEach(tiny.name)))
		Expect(secretsReadBy("viewer")).NotTo(ContainElement(harness.OperatorNamespace))
	})
})
