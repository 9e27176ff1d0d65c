package health_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/controllers/health"
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

	It("because its watch fails is reported with the reason, and blocks neither the caller nor other kinds",
		func(ctx SpecContext) {
			tracker := trackAs(restricted(ctx, namespace, "configmaps"), namespace, mayWatch)
			begin := time.Now()

			unverified, err := tracker.Unverified(ctx, []object.Key{config, manager})

			Expect(time.Since(begin)).To(BeNumerically("<", 10*time.Second))
			Expect(unverified).To(ConsistOf(config))
			Expect(err).To(BeAssignableToTypeOf(&health.WatchError{}))
			Expect(err).To(MatchError(And(
				HavePrefix("the health and drift of Deployment objects are unknown, because they cannot be watched: "),
				ContainSubstring("deployments.apps is forbidden"))))

			begin = time.Now()

			report, err := tracker.Check(ctx, []object.Key{config, manager})
			Expect(err).To(BeAssignableToTypeOf(&health.WatchError{}))
			Expect(report.Objects).To(ConsistOf(HaveField("Object", config)))
			Expect(time.Since(begin)).To(BeNumerically("<", time.Second), "it waits only once")
		})

	It("because it may not be is polled as the account, and its drift is noticed", func(ctx SpecContext) {
		onlyConfigMaps := func(_ context.Context, gvk schema.GroupVersionKind) (bool, error) {
			return gvk.Kind == "ConfigMap", nil
		}
		tracker := trackAs(restricted(ctx, namespace, "configmaps"), namespace, onlyConfigMaps)
		all := []object.Key{config, manager}

		Expect(tracker.Unverified(ctx, all)).To(ConsistOf(config, manager))
		tracker.MarkVerified([]object.Snapshot{versionOf(ctx, config), versionOf(ctx, manager)})
		Eventually(func() ([]object.Key, error) { return tracker.Unverified(ctx, all) }).Should(BeEmpty())

		report, err := tracker.Check(ctx, all)
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Healthy()).To(BeFalse())
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

	It("because the API server takes its time to permit it delays no other kind", func(ctx SpecContext) {
		asked, permit := make(chan struct{}), make(chan struct{})
		slow := func(_ context.Context, gvk schema.GroupVersionKind) (bool, error) {
			if gvk.Kind == "Deployment" {
				close(asked)
				<-permit
			}

			return true, nil
		}
		tracker := trackAs(cluster.Config(), namespace, slow)
		ended := make(chan error, 1)

		go func() {
			_, err := tracker.Unverified(ctx, []object.Key{manager})
			ended <- err
		}()

		Eventually(asked).Should(BeClosed())

		other := make(chan error, 1)

		go func() {
			_, err := tracker.Check(ctx, []object.Key{config})
			other <- err
		}()

		Eventually(other).Should(Receive(BeNil()))
		Expect(ended).NotTo(Receive())

		close(permit)
		Eventually(ended).Should(Receive(BeNil()))
	})

	It("because no release has it any more wakes nothing", func(ctx SpecContext) {
		tracker := track(namespace)
		Expect(tracker.Unverified(ctx, []object.Key{config, manager})).To(HaveLen(2))

		events := 0

		Eventually(func() int {
			events += tracker.woken()
			return events
		}).Should(BeNumerically(">=", 2), "those of both objects")

		Expect(tracker.Unverified(ctx, []object.Key{config})).To(HaveLen(1))
		Eventually(tracker.woken).WithPolling(300*time.Millisecond).Should(BeZero(), "what was on its way has arrived")
		patch(ctx, newDeployment(namespace), `{"spec":{"paused":true}}`)
		Consistently(tracker.woken, "500ms").Should(BeZero())

		patch(ctx, newConfigMap(namespace), `{"data":{"key":"other"}}`)
		Expect(admin.Delete(ctx, newConfigMap(namespace))).To(Succeed())
		Eventually(tracker.woken).Should(BeNumerically(">", 0), "the other kind is still watched")
	})
})
