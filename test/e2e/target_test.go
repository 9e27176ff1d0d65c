package e2e

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("A provider of a tenant", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	It(
		"is rejected with the permissions that its ServiceAccount lacks, and installed when they are granted",
		func(ctx SpecContext) {
			t := newTiny("tenant", "v1.0.0")
			t.components += `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant-role, namespace: tenant-system}
rules:
- {apiGroups: [batch], resources: [jobs], verbs: [create]}
`
			p := t.resource()

			p.Spec.ServiceAccountName = "installer"
			for _, o := range []client.Object{t.namespace(), t.configMap(), p} {
				Expect(w.client.Create(ctx, o)).To(Succeed())
			}

			Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.MissingPermissionsReason,
				"system:serviceaccount:tenant:installer does not exist and may not list configmaps, which the resource names"))

			grant(ctx, w, t.name, "configmaps", "", "get", "list")
			grant(ctx, w, t.name, "secrets", "", "list")
			Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.MissingPermissionsReason,
				`cannot get resource "serviceaccounts"`, `cannot get resource "deployments"`,
				"grant that permission, for example with the roles that `capstan permissions` prints"))
			nothingIsApplied(ctx, w, t.name)

			Expect(
				w.client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "installer"}}),
			).To(Succeed())
			grant(ctx, w, t.name, "secrets", "", "get", "list", "create", "update", "patch", "delete")
			grant(ctx, w, t.name, "serviceaccounts", "", "get", "create", "patch", "delete")
			grant(ctx, w, t.name, "deployments", "apps", "get", "patch", "delete")
			grant(ctx, w, t.name, "horizontalpodautoscalers", "autoscaling", "list")
			grant(ctx, w, t.name, "roles", "rbac.authorization.k8s.io", "get", "create", "patch", "delete")
			grantCRD(ctx, w, t)
			Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.MissingPermissionsReason,
				`User "system:serviceaccount:tenant:installer" cannot create resource "deployments"`,
				`is attempting to grant RBAC permissions not currently held`, `"batch"`))
			nothingIsApplied(ctx, w, t.name)

			grant(ctx, w, t.name, "deployments", "apps", "create")
			grant(ctx, w, t.name, "jobs", "batch", "create")
			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"})
			})
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

			By("checking which user sent the requests")

			writers := map[string]bool{}
			requests, err := w.bed.Requests(func(r bed.Request) bool {
				return r.Code == http.StatusCreated && r.Namespace == t.name && r.Resource == "deployments"
			})
			Expect(err).NotTo(HaveOccurred())

			for _, r := range requests {
				writers[r.User] = true
			}

			Expect(writers).To(Equal(map[string]bool{"system:serviceaccount:tenant:installer": true}))

			Expect(w.client.Delete(ctx, p)).To(Succeed())
			Eventually(gone(ctx, w, p)).Should(BeTrue())
		},
	)
})

// grantCRD gives the tenant's installer permissions on the CRD of its provider, and on the objects.
func grantCRD(ctx context.Context, w *world, t tiny) {
	GinkgoHelper()

	name := metav1.ObjectMeta{Name: t.name + "-crds"}
	role := &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{
			APIGroups:     []string{apiextensionsv1.GroupName},
			Resources:     []string{"customresourcedefinitions", "customresourcedefinitions/status"},
			ResourceNames: []string{t.crd()},
			Verbs:         []string{"get", "create", "patch"},
		},
		{
			APIGroups: []string{"infrastructure.cluster.x-k8s.io"},
			Resources: []string{t.plural(), t.plural() + "/status"},
			Verbs:     []string{"get", "list", "patch"},
		},
	}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: name,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: t.name, Name: "installer"}}}
	Expect(w.client.Create(ctx, role)).To(Succeed())
	Expect(w.client.Create(ctx, binding)).To(Succeed())
}

// grant gives the tenant's installer permissions on a resource in its namespace.
func grant(ctx context.Context, w *world, namespace, resource, group string, verbs ...string) {
	GinkgoHelper()

	name := resource + "-" + verbs[0]
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName,
			Kind:     "Role",
			Name:     name,
		},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "installer"}},
	}

	Expect(w.client.Create(ctx, role)).To(Succeed())
	Expect(w.client.Create(ctx, binding)).To(Succeed())
}

var _ = Describe("Providers in a remote cluster", Ordered, func() {
	var (
		w, there *world
		line     *wire
		core, p  v1alpha2.Provider
	)

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		there = newWorld()

		w.withoutCore(ctx)

		server, err := url.Parse(there.bed.Config().Host)
		Expect(err).NotTo(HaveOccurred())

		line = newWire(server.Host)
		DeferCleanup(line.cut)
	})

	// remotely makes a provider's target the other cluster, through the proxy.
	remotely := func(ctx context.Context, p v1alpha2.Provider) {
		GinkgoHelper()

		kubeconfig, err := os.ReadFile(there.bed.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())

		text := strings.ReplaceAll(string(kubeconfig), there.bed.Config().Host, "https://"+line.address)
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.GetNamespace(), Name: "there"},
			StringData: map[string]string{"value": text},
		}
		Expect(client.IgnoreAlreadyExists(w.client.Create(ctx, secret))).To(Succeed())

		p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{
			SecretRef: v1alpha2.KubeConfigSecretReference{
				LocalSecretReference: v1alpha2.LocalSecretReference{Name: "there"},
				Key:                  "value",
			},
		}
	}

	It("wait for a kubeconfig", func(ctx SpecContext) {
		release, err := harness.Load(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Expect(err).NotTo(HaveOccurred())
		Expect(release.Prepare(ctx, w.client)).To(Succeed())
		core = release.Resource()
		core.GetSpec().KubeConfig = &v1alpha2.KubeConfig{
			SecretRef: v1alpha2.KubeConfigSecretReference{
				LocalSecretReference: v1alpha2.LocalSecretReference{Name: "there"},
				Key:                  "value",
			},
		}
		Expect(w.client.Create(ctx, core)).To(Succeed())
		Eventually(w.read(ctx, core)).Should(failPreflight(v1alpha2.KubeConfigErrorReason,
			"Secret cluster-api-system/there of spec.kubeConfig does not exist"))
		remotely(ctx, core)
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))
	})

	It("are installed there with their CRDs, and not in the operator's cluster", func(ctx SpecContext) {
		older, newer := newTiny("far", "v1.0.0"), newTiny("far", "v1.1.0")
		p = older.resource()
		p.SetNamespace(core.GetNamespace())

		for _, t := range []tiny{older, newer} {
			cm := t.configMap()
			cm.Namespace, cm.Name = p.GetNamespace(), "far-"+cm.Name
			cm.Labels[v1alpha2.ConfigMapVersionLabel] = t.version
			Expect(w.client.Create(ctx, cm)).To(Succeed())
		}

		remotely(ctx, p)
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(there.helm(ctx, "helm", "list", "-A")).To(
			ConsistOf(HaveField("Name", "cluster-api"), HaveField("Name", "infrastructure-far")))
		Expect(w.helm(ctx, "helm", "list", "-n", p.GetNamespace())).To(BeEmpty())

		name := client.ObjectKey{Name: "tinyfars.infrastructure.cluster.x-k8s.io"}
		Expect(there.client.Get(ctx, name, &apiextensionsv1.CustomResourceDefinition{})).To(Succeed())
		Expect(client.IgnoreNotFound(w.client.Get(ctx, name, &apiextensionsv1.CustomResourceDefinition{}))).To(Succeed())
	})

	It("are corrected there", func(ctx SpecContext) {
		there.run(ctx, "kubectl", "scale", "deployment", "far-controller-manager", "-n", p.GetNamespace(), "--replicas=0")
		Eventually(func() string {
			return there.run(ctx, "kubectl", "get", "deployment", "far-controller-manager", "-n", p.GetNamespace(),
				"-o", "jsonpath={.spec.replicas}")
		}).Should(Equal("1"))
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("stay as they are while their cluster cannot be reached", func(ctx SpecContext) {
		line.cut()
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.ClusterUnreachableReason, line.address))
		line.restore()
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(there.helm(ctx, "helm", "history", "infrastructure-far", "-n", p.GetNamespace())).To(HaveExactElements(
			HaveField("Status", "superseded"), HaveField("Status", "deployed")))
	})

	It("are let go if a user removes the finalizer, because their cluster no longer exists", func(ctx SpecContext) {
		other := newWire(line.to)
		DeferCleanup(other.cut)

		kubeconfig := &corev1.Secret{}
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: p.GetNamespace(), Name: "there"}, kubeconfig)).To(Succeed())

		text := strings.ReplaceAll(string(kubeconfig.Data["value"]), line.address, other.address)
		Expect(w.client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.GetNamespace(), Name: "other"},
			StringData: map[string]string{"value": text},
		})).To(Succeed())

		t := newTiny("forgotten", "v1.0.0")
		forgotten, source := t.resource(), t.configMap()
		forgotten.Namespace, source.Namespace, source.Name = p.GetNamespace(), p.GetNamespace(), t.name
		source.Labels[v1alpha2.ConfigMapVersionLabel] = t.version
		forgotten.Spec.KubeConfig = p.GetSpec().KubeConfig.DeepCopy()
		forgotten.Spec.KubeConfig.SecretRef.Name = "other"

		Expect(w.client.Create(ctx, source)).To(Succeed())
		Expect(w.client.Create(ctx, forgotten)).To(Succeed())
		Eventually(w.read(ctx, forgotten)).Should(beReady("v1.0.0"))

		other.cut()
		Expect(w.client.Delete(ctx, forgotten)).To(Succeed())
		Eventually(w.read(ctx, forgotten)).Should(notBeReady(v1alpha2.ClusterUnreachableReason, other.address,
			"if that cluster no longer exists, remove the finalizer "+v1alpha2.Finalizer+" from this resource"))
		update(ctx, w, forgotten, func(p v1alpha2.Provider) { p.SetFinalizers(nil) })
		Eventually(gone(ctx, w, forgotten)).Should(BeTrue())
		there.run(ctx, "helm", "uninstall", "infrastructure-forgotten", "-n", p.GetNamespace())
	})

	It("are uninstalled there", func(ctx SpecContext) {
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		Expect(w.client.Delete(ctx, core)).To(Succeed())
		Eventually(gone(ctx, w, core)).Should(BeTrue())
		Expect(there.helm(ctx, "helm", "list", "-A")).To(BeEmpty())
	})

	It("are kept there if their namespace is deleted together with the kubeconfig", func(ctx SpecContext) {
		release, err := harness.Load(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Expect(err).NotTo(HaveOccurred())

		core = release.Resource()
		remotely(ctx, core)
		Expect(w.client.Create(ctx, core)).To(Succeed())
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))
		Expect(w.operator.Stop()).To(Succeed())

		namespace := core.GetNamespace()
		Expect(w.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		Eventually(gone(ctx, w, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there"},
		})).Should(BeTrue())
		w.start()
		Eventually(gone(ctx, w, core)).Should(BeTrue())
		Expect(there.helm(ctx, "helm", "list", "-A")).To(ConsistOf(HaveField("Name", "cluster-api")))

		Eventually(func(g Gomega) {
			events := &corev1.EventList{}
			g.Expect(w.client.List(ctx, events, client.InNamespace("default"))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(
				HaveField("Reason", v1alpha2.ReleaseKeptReason),
				HaveField("InvolvedObject.Kind", "Namespace"),
				HaveField("InvolvedObject.Name", namespace),
				HaveField("Message", ContainSubstring("what it installed as release "+namespace+"/cluster-api was kept")),
			)))
		}).Should(Succeed())
		Eventually(gone(ctx, w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).Should(BeTrue())
	})

	It("belong to the resource that has installed them, until another may take them over", func(ctx SpecContext) {
		const elsewhere = "was installed by a provider resource in another cluster"

		release, err := harness.Load(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Expect(err).NotTo(HaveOccurred())
		there.start()

		duplicate, err := release.Install(ctx, there.client)
		Expect(err).NotTo(HaveOccurred())
		Eventually(there.read(ctx, duplicate)).Should(
			beStalled(v1alpha2.MoreThanOneProviderInstanceExistsReason, elsewhere))
		Expect(there.client.Delete(ctx, duplicate)).To(Succeed())
		Eventually(gone(ctx, there, duplicate)).Should(BeTrue())
		Expect(there.helm(ctx, "helm", "history", "cluster-api", "-n", release.Namespace)).To(HaveLen(1))

		By("taking it over")

		owner := release.Resource()
		owner.SetAnnotations(map[string]string{v1alpha2.AdoptReleaseAnnotation: "true"})
		Expect(there.client.Create(ctx, owner)).To(Succeed())
		Eventually(there.read(ctx, owner)).Should(beReady("v1.0.0"))
		Expect(there.helm(ctx, "helm", "history", "cluster-api", "-n", release.Namespace)).To(HaveLen(2))

		By("looking at it from the other cluster again")

		duplicate = w.duplicateCore(ctx, there, release.Namespace)
		Eventually(w.read(ctx, duplicate)).Should(
			beStalled(v1alpha2.MoreThanOneProviderInstanceExistsReason, elsewhere))
		update(ctx, w, duplicate, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{
				v1alpha2.DeleteCRDsAnnotation: "true", v1alpha2.DeleteNamespaceAnnotation: "true",
			})
		})
		Expect(w.client.Delete(ctx, duplicate)).To(Succeed())
		Eventually(w.read(ctx, duplicate)).Should(notBeReady(v1alpha2.DeletionBlockedReason,
			"contains other things: Helm releases cluster-api"))
		update(ctx, w, duplicate, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.DeleteCRDsAnnotation: "true"})
		})
		Eventually(gone(ctx, w, duplicate)).Should(BeTrue())
		Consistently(there.read(ctx, owner), quietPeriod).Should(beReady("v1.0.0"))
		Expect(there.helm(ctx, "helm", "history", "cluster-api", "-n", release.Namespace)).To(HaveLen(2))
	})
})

// wire forwards connections to an address until it is cut.
type wire struct {
	address, to string

	mu       sync.Mutex
	listener net.Listener
	open     []net.Conn
}

func newWire(to string) *wire {
	GinkgoHelper()

	w := &wire{address: "127.0.0.1:0", to: to}
	w.restore()

	return w
}

// restore accepts connections again, at the same address.
func (w *wire) restore() {
	GinkgoHelper()

	var listener net.Listener

	Eventually(func() (err error) {
		listener, err = net.Listen("tcp", w.address)
		return err
	}).Should(Succeed())
	w.mu.Lock()
	defer w.mu.Unlock()

	w.listener, w.address = listener, listener.Addr().String()

	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}

			to, err := net.Dial("tcp", w.to)
			if err != nil {
				_ = from.Close()
				continue
			}

			w.mu.Lock()
			w.open = append(w.open, from, to)
			w.mu.Unlock()

			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}
	}()
}

// cut closes all connections and accepts no new ones.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()

	_ = w.listener.Close()
	for _, c := range w.open {
		_ = c.Close()
	}

	w.open = nil
}
