package chart

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("With an operator that must not install providers itself", Ordered, func() {
	var (
		operator     *harness.Operator
		core, tenant v1alpha2.Provider
		began        time.Time
		granted      time.Time // to the account of the tenant
	)

	gadget := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "Gadget"}
	crd := client.ObjectKey{Name: "gadgets.infrastructure.cluster.x-k8s.io"}

	BeforeAll(func(ctx SpecContext) {
		began = time.Now()

		run(ctx, "helm", "install", release, light, "-n", namespace, "--create-namespace",
			"--set", "rbac.installProviders=false,replicas=0")
		operator = startOperator(ctx, "--upgrade-crds", "--remote-interval=10m")
	})
	AfterAll(func(ctx SpecContext) {
		run(ctx, "helm", "uninstall", release, "-n", namespace)
		removeAll(ctx)
	})

	It("publishes its configuration for the command line", func(ctx SpecContext) {
		published := func() (*controllers.Published, error) { return controllers.ReadPublished(ctx, admin, namespace) }
		Eventually(published).Should(HaveField("Flags", HaveKeyWithValue("remote-interval", "10m0s")))
	})

	It("installs core by an account with the roles that the command prints", func(ctx SpecContext) {
		core = install(ctx, harness.Wanted{Label: "cluster-api", Version: "v1.0.0"})
		Eventually(version(ctx, core)).Should(Equal("v1.0.0"))
	})

	It("reports what an account lacks, with names", func(ctx SpecContext) {
		tenant = prepareGadgets(ctx)
		Expect(admin.Create(ctx, tenant)).To(Succeed())
		Eventually(message(ctx, tenant)).Should(HavePrefix(
			"not installed: system:serviceaccount:gadgets:installer may not list configmaps, which the resource names"))

		run(ctx, "kubectl", "-n", "gadgets", "create", "role", "sources", "--verb=get,list", "--resource=configmaps,secrets")
		run(ctx, "kubectl", "-n", "gadgets", "create", "rolebinding", "sources", "--role=sources",
			"--serviceaccount=gadgets:"+account)
		requestReconcile(ctx, tenant, "sources")
		Eventually(message(ctx, tenant)).Should(And(
			HavePrefix("not installed: the API server would refuse "), ContainSubstring(", so nothing was changed: "),
			ContainSubstring(`User "system:serviceaccount:gadgets:installer" cannot get resource "deployments"`),
			ContainSubstring(`clusterroles.rbac.authorization.k8s.io "gadgets-manager" is forbidden`),
			HaveSuffix("grant that permission, for example with the roles that `capstan permissions` prints"),
		))
	})

	It("installs the provider when they are granted", func(ctx SpecContext) {
		grantAccount(ctx, tenant)

		granted = time.Now()

		requestReconcile(ctx, tenant, "roles")
		Eventually(version(ctx, tenant)).Should(Equal("v1.0.0"))

		o := &corev1.Namespace{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: "gadgets"}, o)).To(Succeed())
		Expect(o.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "baseline"))

		run(ctx, "kubectl", "auth", "can-i", "list", "addonproviders.operator.cluster.x-k8s.io", "--all-namespaces",
			"--as", "system:serviceaccount:gadgets:"+account)
	})

	It("corrects drift with them", func(ctx SpecContext) {
		run(ctx, "kubectl", "-n", "gadgets", "delete", "service", "gadgets-webhook")
		run(ctx, "kubectl", "-n", "gadgets", "scale", "deployment", "gadgets-manager", "--replicas=3")
		run(ctx, "kubectl", "delete", "clusterrole", "gadgets-manager")

		Eventually(func(g Gomega) {
			out, err := try(ctx, "kubectl", "-n", "gadgets", "get", "service/gadgets-webhook", "clusterrole/gadgets-manager",
				"deployment/gadgets-manager", "-o", "jsonpath={.items[*].spec.replicas}")
			g.Expect(err).NotTo(HaveOccurred(), out)
			g.Expect(out).To(Equal("1"))
		}).Should(Succeed())
	})

	It("upgrades with them: changed CRDs, objects in a new storage version, and objects that are dropped",
		func(ctx SpecContext) {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(gadget)
			o.SetNamespace("default")
			o.SetName("mine")
			Expect(admin.Create(ctx, o)).To(Succeed())

			Expect(admin.Get(ctx, client.ObjectKeyFromObject(tenant), tenant)).To(Succeed())
			before := tenant.DeepCopyObject().(v1alpha2.Provider)
			tenant.GetSpec().Version = "v1.1.0"
			grantAccount(ctx, tenant)
			Expect(admin.Patch(ctx, tenant, client.MergeFrom(before))).To(Succeed())
			Eventually(version(ctx, tenant)).Should(Equal("v1.1.0"))

			// As if the provider's manager had tried to rewrite the objects: the operator does not wait for it then.
			d := &apiextensionsv1.CustomResourceDefinition{}
			Expect(admin.Get(ctx, crd, d)).To(Succeed())
			run(ctx, "kubectl", "annotate", "crd", crd.Name,
				fmt.Sprintf("%s=%d", clusterv1.CRDMigrationObservedGenerationAnnotation, d.Generation))

			Eventually(func(g Gomega) []string {
				g.Expect(admin.Get(ctx, crd, d)).To(Succeed())

				return d.Status.StoredVersions
			}).Should(Equal([]string{"v2"}))
			expectGone(ctx, "service", "gadgets-webhook")
		})

	It("removes providers with them, unless they are in use", func(ctx SpecContext) {
		Expect(admin.Delete(ctx, tenant)).To(Succeed())
		Eventually(message(ctx, tenant)).Should(ContainSubstring("default/mine"))
		run(ctx, "kubectl", "-n", "default", "delete", "gadgets", "mine")

		for _, p := range []v1alpha2.Provider{tenant, core} {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, p))).To(Succeed())
			Eventually(gone(ctx, p)).Should(BeTrue())
		}

		expectGone(ctx, "clusterrole", "gadgets-manager")
	})

	It("never sends a request that is denied, nor one of its own beyond its documented roles", func(ctx SpecContext) {
		Expect(operator.Stop()).To(Succeed()) // a watch is logged when it ends

		documented := roleRules(ctx, "operator", "watch-providers")

		inNamespace := &rbacv1.RoleList{}
		Expect(admin.List(ctx, inNamespace, client.InNamespace(namespace))).To(Succeed())

		for _, role := range inNamespace.Items {
			documented = append(documented, role.Rules...)
		}

		requests, err := cluster.Requests(func(r bed.Request) bool { return r.Resource != "" && r.Received.After(began) })
		Expect(err).NotTo(HaveOccurred())

		for _, user := range []string{operatorUser, accountUser(core), accountUser(tenant)} {
			sent := slices.DeleteFunc(slices.Clone(requests), func(r bed.Request) bool {
				return r.User != user || user == accountUser(tenant) && r.Received.Before(granted)
			})
			Expect(len(sent)).To(BeNumerically(">", 10), user)

			for _, r := range sent {
				Expect(r.Code).NotTo(Equal(403), "%s: %s %s", user, r.Verb, r.URI)
				Expect(user != operatorUser || allowed(documented, r)).To(BeTrue(),
					"not in a role of the chart: %s %s", r.Verb, r.URI)
			}
		}
	})
})

// roleRules returns the rules of the chart's ClusterRoles.
func roleRules(ctx context.Context, names ...string) []rbacv1.PolicyRule {
	GinkgoHelper()

	var rules []rbacv1.PolicyRule

	for _, name := range names {
		role := &rbacv1.ClusterRole{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: namespace + "-" + name}, role)).To(Succeed())
		rules = append(rules, role.Rules...)
	}

	return rules
}

// allowed reports whether a rule allows a request. Every account may ask what it may do itself.
func allowed(rules []rbacv1.PolicyRule, r bed.Request) bool {
	return r.Group == "authorization.k8s.io" || slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		named := len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name)

		return named && slices.Contains(rule.Verbs, r.Verb) && slices.Contains(rule.APIGroups, r.Group) &&
			slices.Contains(rule.Resources, resource(r))
	})
}

// accountUser returns the user name of the account that installs a provider.
func accountUser(p v1alpha2.Provider) string {
	return "system:serviceaccount:" + p.GetNamespace() + ":" + account
}

// message returns the message of a provider's condition Ready.
func message(ctx context.Context, p v1alpha2.Provider) func() string {
	return func() string {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error()
		}

		return conditions.GetMessage(p, v1alpha2.ReadyCondition)
	}
}

// requestReconcile asks the operator for a reconcile; each request needs another value.
func requestReconcile(ctx context.Context, p v1alpha2.Provider, value string) {
	GinkgoHelper()

	run(ctx, "kubectl", "-n", p.GetNamespace(), "annotate", "--overwrite", "infrastructureprovider", p.GetName(),
		v1alpha2.ReconcileRequestAnnotation+"="+value)
}

// gone reports whether a provider's resource no longer exists.
func gone(ctx context.Context, p v1alpha2.Provider) func() bool {
	return func() bool {
		err := admin.Get(ctx, client.ObjectKeyFromObject(p), p.DeepCopyObject().(client.Object))

		return err != nil && client.IgnoreNotFound(err) == nil
	}
}

// expectGone expects that an object of the provider gadgets does not exist.
func expectGone(ctx context.Context, kind, name string) {
	GinkgoHelper()

	out, err := try(ctx, "kubectl", "-n", "gadgets", "get", kind, name)
	Expect(err).To(HaveOccurred())
	Expect(out).To(ContainSubstring("NotFound"))
}

// prepareGadgets creates what the provider gadgets is installed from and with, without permissions, and
// returns its resource. Its version v1.1.0 has another storage version and one object less.
func prepareGadgets(ctx context.Context) v1alpha2.Provider {
	GinkgoHelper()

	labels := map[string]string{"provider": "gadgets"}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: objectName("gadgets")}}

	for version, parts := range map[string][]string{
		"v1.0.0": {fmt.Sprintf(gadgets, "v1.0.0", true, ""), gadgetsService},
		"v1.1.0": {fmt.Sprintf(gadgets, "v1.1.0", false, gadgetsV2)},
	} {
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "gadgets", Name: version, Labels: labels},
			Data: map[string]string{
				v1alpha2.ConfigMapComponentsKey: strings.Join(parts, "---\n"),
				v1alpha2.ConfigMapMetadataKey: `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries: [{major: 1, minor: 0, contract: v1beta2}, {major: 1, minor: 1, contract: v1beta2}]
`,
			},
		})
	}

	for _, o := range objects {
		Expect(client.IgnoreAlreadyExists(admin.Create(ctx, o))).To(Succeed())
	}

	createAccount(ctx, "gadgets")

	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "gadgets", Name: "gadgets"}}
	p.Spec.Version = "v1.0.0"
	p.Spec.ServiceAccountName = account
	p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Selector: &metav1.LabelSelector{MatchLabels: labels}}
	p.Spec.AdditionalManagedTypes = []v1alpha2.ManagedType{{Group: v1alpha2.GroupVersion.Group, Kind: "AddonProvider"}}

	return p
}

// gadgets are the components of a provider, with its version, whether v1 is the storage version of its
// kind, and a further version of the kind.
const gadgets = `apiVersion: v1
kind: Namespace
metadata:
  name: gadgets-system
  labels: {pod-security.kubernetes.io/enforce: baseline}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.infrastructure.cluster.x-k8s.io
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: %[2]t
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
    subresources: {status: {}}
%[3]s---
apiVersion: v1
kind: ServiceAccount
metadata: {name: gadgets-manager, namespace: gadgets-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gadgets-manager}
rules:
- {apiGroups: [infrastructure.cluster.x-k8s.io], resources: [gadgets, gadgets/status], verbs: ["*"]}
- {apiGroups: [""], resources: [nodes], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gadgets-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gadgets-manager}
subjects: [{kind: ServiceAccount, name: gadgets-manager, namespace: gadgets-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: gadgets-leader-election, namespace: gadgets-system}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gadgets-leader-election, namespace: gadgets-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gadgets-leader-election}
subjects: [{kind: ServiceAccount, name: gadgets-manager, namespace: gadgets-system}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gadgets-manager, namespace: gadgets-system}
spec:
  replicas: 1
  selector: {matchLabels: {app: gadgets}}
  template:
    metadata: {labels: {app: gadgets}}
    spec:
      serviceAccountName: gadgets-manager
      terminationGracePeriodSeconds: 0
      containers: [{name: manager, image: "registry.example.com/gadgets:%[1]s"}]
`

// gadgetsService is an object that v1.1.0 does not have any more.
const gadgetsService = `apiVersion: v1
kind: Service
metadata: {name: gadgets-webhook, namespace: gadgets-system}
spec:
  ports: [{port: 443}]
  selector: {app: gadgets}
`

// gadgetsV2 is a new storage version.
const gadgetsV2 = `  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
    subresources: {status: {}}
`
