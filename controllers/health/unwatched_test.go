package health_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/object"
)

// restricted returns the configuration of a user who may only list and watch some resources.
func restricted(ctx context.Context, name string, resources ...string) *rest.Config {
	GinkgoHelper()

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: resources, Verbs: []string{"list", "watch"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}

	Expect(admin.Create(ctx, role)).To(Succeed())
	Expect(admin.Create(ctx, binding)).To(Succeed())

	config := rest.CopyConfig(cluster.Config())
	config.Impersonate = rest.ImpersonationConfig{UserName: name}

	return config
}

var _ = Describe("A kind that is not watched", func() {
	var (
		namespace       string
		config, manager object.Key
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		config = named(corev1.SchemeGroupVersion.WithKind("ConfigMap"), namespace, "config")
		manager = named(appsv1.SchemeGroupVersion.WithKind("Deployment"), namespace, "manager")

		Expect(admin.Create(ctx, newConfigMap(namespace))).To(Succeed())
		Expect(admin.Create(ctx, newDeployment(namespace))).To(Succeed())
	})

	It("because it may not be is read as the account, and its drift is noticed", func(ctx SpecContext) {
		tracker := trackAs(restricted(ctx, namespace, "configmaps"), namespace)
		all := []object.Key{config, manager}

		Expect(tracker.Unverified(ctx, all)).To(ConsistOf(config, manager), "without a delay")
		tracker.MarkVerified([]object.Snapshot{versionOf(ctx, config), versionOf(ctx, manager)})
		Eventually(func() ([]object.Key, error) { return tracker.Unverified(ctx, all) }).Should(BeEmpty())

		Eventually(func(g Gomega) {
			report, err := tracker.Check(ctx, all)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(report.Healthy()).To(BeFalse())
			g.Expect(report.Unwatched).To(Equal([]string{"Deployment"}))
		}).Should(Succeed())
		tracker.mu.Lock()
		Expect(tracker.wakes).To(ContainElement(5*time.Second), "to read it again")
		tracker.mu.Unlock()

		deployment := newDeployment(namespace)
		patch(ctx, deployment, `{"spec":{"replicas":0}}`)
		Eventually(func() ([]object.Key, error) { return tracker.Unverified(ctx, all) }).Should(ConsistOf(manager))

		tracker.MarkVerified([]object.Snapshot{versionOf(ctx, manager)})
		Expect(tracker.Unverified(ctx, all)).To(BeEmpty(), "what was read before does not count")

		Expect(admin.Delete(ctx, deployment)).To(Succeed())
		Eventually(func() ([]object.Key, error) { return tracker.Unverified(ctx, all) }).Should(ConsistOf(manager))
	})

	It("because no release has it any more wakes nothing", func(ctx SpecContext) {
		tracker := track(namespace)
		Expect(tracker.Unverified(ctx, []object.Key{config})).To(HaveLen(1))
		tracker.MarkVerified([]object.Snapshot{versionOf(ctx, config)})
		Eventually(tracker.woken).Should(BeNumerically(">", 0), "the watch shows it")

		tracker.Forget(namespace, namespace)
		patch(ctx, newConfigMap(namespace), `{"data":{"key":"other"}}`)
		Consistently(tracker.woken, "500ms").Should(BeZero())
	})
})

var _ = Describe("A kind of which only the metadata is watched", func() {
	It("is watched once it is served, and its objects are read when they change", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		sample := named(schema.GroupVersionKind{Group: "health.example.com", Version: "v1", Kind: "Sample"}, namespace, "a")

		tracker := track(namespace)
		reads := &countingReader{Reader: admin}
		tracker.owner.Reader = reads
		check := func(g Gomega) string {
			report, err := tracker.Check(ctx, []object.Key{sample})
			g.Expect(err).NotTo(HaveOccurred())

			return report.Message(namespace)
		}

		Expect(check(Default)).To(HaveSuffix("does not exist"))

		definition := &unstructured.Unstructured{}
		Expect(definition.UnmarshalJSON([]byte(`{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": {"name": "samples.health.example.com"},
			"spec": {"group": "health.example.com", "scope": "Namespaced",
				"names": {"kind": "Sample", "plural": "samples"},
				"versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema":
					{"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`))).To(Succeed())
		Expect(admin.Create(ctx, definition)).To(Succeed())

		marks := owned(namespace, "a")

		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(sample.GroupVersionKind)
		o.SetNamespace(namespace)
		o.SetName("a")
		o.SetLabels(marks.Labels)
		o.SetAnnotations(marks.Annotations)

		Eventually(func() error { return admin.Create(ctx, o) }).Should(Succeed())
		Eventually(check).Should(BeEmpty())
		Eventually(func(g Gomega) int {
			before := reads.count.Load()

			check(g)

			return int(reads.count.Load() - before)
		}).WithTimeout(30*time.Second).Should(BeZero(), "it is watched")

		tracker.MarkVerified([]object.Snapshot{versionOf(ctx, sample)})
		tracker.woken()

		failing := `{"status":{"conditions":[{"type":"Ready","status":"False","message":"no login"}]}}`
		Expect(admin.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(failing)))).To(Succeed())
		Eventually(tracker.woken).Should(BeNumerically(">", 0))
		Eventually(check).Should(HaveSuffix("no login"))
		Expect(tracker.Unverified(ctx, []object.Key{sample})).To(BeEmpty(), "only its status has changed")

		before := reads.count.Load()

		Expect(check(Default)).To(HaveSuffix("no login"))
		Expect(reads.count.Load()).To(Equal(before), "it is read once")
	})
})

// countingReader counts the objects that are read.
type countingReader struct {
	client.Reader
	count atomic.Int64
}

func (r *countingReader) Get(
	ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption,
) error {
	r.count.Add(1)
	return r.Reader.Get(ctx, key, o, options...)
}
