package health_test

import (
	"context"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/object"
)

func newConfigMap(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: owned(namespace, "config"), Data: map[string]string{"key": "value"}}
}

func newDeployment(namespace string) *appsv1.Deployment {
	app := map[string]string{"app": "manager"}

	return &appsv1.Deployment{ObjectMeta: owned(namespace, "manager"), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "manager", Image: "registry.example.com/manager:v9"}},
		}},
	}}
}

// versionOf reads the version of an object from the API server.
func versionOf(ctx context.Context, o object.Key) object.Snapshot {
	GinkgoHelper()

	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind)
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, live)).To(Succeed())

	return object.SnapshotOf(o, live)
}

// following returns the next resource version.
func following(version string) string {
	GinkgoHelper()

	n, err := strconv.Atoi(version)
	Expect(err).NotTo(HaveOccurred())

	return strconv.Itoa(n + 1)
}

func patch(ctx context.Context, o client.Object, merge string) {
	GinkgoHelper()
	Expect(admin.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(merge)))).To(Succeed())
}

var _ = Describe("Unverified", func() {
	var (
		namespace       string
		tracker         *watched
		config, manager object.Key
		configMap       *corev1.ConfigMap
		deployment      *appsv1.Deployment
	)

	unverified := func(ctx context.Context) []object.Key {
		GinkgoHelper()

		objects, err := tracker.Unverified(ctx, []object.Key{config, manager})
		Expect(err).NotTo(HaveOccurred())

		return objects
	}
	verify := func(ctx context.Context) {
		GinkgoHelper()
		tracker.MarkVerified([]object.Snapshot{versionOf(ctx, config), versionOf(ctx, manager)})
	}

	// settled waits until the Deployment's controller has written its status, and does so no more.
	settled := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			before := deployment.ResourceVersion
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
			g.Expect(deployment.Status.ObservedGeneration).To(BeEquivalentTo(1))
			g.Expect(deployment.Status.UnavailableReplicas).To(BeEquivalentTo(1))
			g.Expect(deployment.Annotations).To(HaveKey("deployment.kubernetes.io/revision"))
			g.Expect(deployment.ResourceVersion).To(Equal(before))
		}).WithPolling(500 * time.Millisecond).Should(Succeed())
	}

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		tracker = track(namespace)
		configMap, deployment = newConfigMap(namespace), newDeployment(namespace)
		config = named(corev1.SchemeGroupVersion.WithKind("ConfigMap"), namespace, "config")
		manager = named(appsv1.SchemeGroupVersion.WithKind("Deployment"), namespace, "manager")

		Expect(admin.Create(ctx, configMap)).To(Succeed())
		Expect(admin.Create(ctx, deployment)).To(Succeed())
	})

	It("returns objects until they are verified", func(ctx SpecContext) {
		Expect(unverified(ctx)).To(ConsistOf(config, manager))
		verify(ctx)
		Expect(unverified(ctx)).To(BeEmpty())
	})

	DescribeTable(
		"returns an object that changes, and wakes its provider",
		func(ctx SpecContext, change func(context.Context), expected func() object.Key) {
			verify(ctx)
			Eventually(unverified).WithContext(ctx).Should(BeEmpty())
			tracker.woken()
			change(ctx)
			Eventually(unverified).WithContext(ctx).Should(ConsistOf(expected()))
			Eventually(tracker.woken).Should(BeNumerically(">", 0))
		},
		Entry(
			"watched by metadata",
			func(ctx context.Context) { patch(ctx, configMap, `{"data":{"key":"other"}}`) },
			func() object.Key { return config },
		),
		Entry(
			"watched as a whole",
			func(ctx context.Context) { patch(ctx, deployment, `{"spec":{"replicas":0}}`) },
			func() object.Key { return manager },
		),
		Entry(
			"a label",
			func(ctx context.Context) { patch(ctx, deployment, `{"metadata":{"labels":{"app":"other"}}}`) },
			func() object.Key { return manager },
		),
		Entry(
			"the annotations of the release",
			func(ctx context.Context) { patch(ctx, configMap, `{"metadata":{"annotations":null}}`) },
			func() object.Key { return config },
		),
		Entry(
			"the label it is watched by",
			func(ctx context.Context) { patch(ctx, configMap, `{"metadata":{"labels":null}}`) },
			func() object.Key { return config },
		),
		Entry(
			"a deletion",
			func(ctx context.Context) { _ = admin.Delete(ctx, configMap) },
			func() object.Key { return config },
		),
	)

	It("returns a drifted object until it is verified, and wakes its provider at each change", func(ctx SpecContext) {
		settled(ctx)
		verify(ctx)
		tracker.MarkDrifted([]object.Snapshot{versionOf(ctx, config)})
		Expect(unverified(ctx)).To(ConsistOf(config))

		events := 0

		Eventually(func() int {
			events += tracker.woken()
			return events
		}).Should(BeNumerically(">=", 2), "those of both objects so far")
		Consistently(tracker.woken).WithTimeout(500 * time.Millisecond).Should(BeZero())
		patch(ctx, configMap, `{"data":{"key":"other"}}`)
		Eventually(tracker.woken).Should(BeNumerically(">", 0))
		verify(ctx)
		Eventually(unverified).WithContext(ctx).Should(BeEmpty())
	})

	It("ignores changes of the status", func(ctx SpecContext) {
		verify(ctx)

		before := deployment.ResourceVersion

		settled(ctx)
		Expect(deployment.ResourceVersion).NotTo(Equal(before))
		Consistently(unverified).WithContext(ctx).WithTimeout(500 * time.Millisecond).Should(BeEmpty())
	})

	It("knows what is verified without a request", func(ctx SpecContext) {
		both := []object.Key{config, manager}
		Expect(tracker.Verified(both)).To(BeEmpty())

		verify(ctx)
		Expect(unverified(ctx)).To(BeEmpty()) // which begins to watch

		verified := func() (keys []object.Key) {
			for _, v := range tracker.Verified(both) {
				keys = append(keys, v.Object)
			}

			return keys
		}
		Eventually(verified).Should(ContainElement(config))

		By("not what differs from the release")
		tracker.MarkDrifted([]object.Snapshot{versionOf(ctx, config)})
		Expect(tracker.Verified([]object.Key{config})).To(BeEmpty())

		By("not what is excluded from the comparison")
		patch(ctx, configMap, `{"metadata":{"annotations":{"capstan.dev/drift":"ignore"}}}`)
		tracker.MarkVerified([]object.Snapshot{versionOf(ctx, config)})
		Consistently(func() []object.Snapshot { return tracker.Verified([]object.Key{config}) }).
			WithTimeout(500 * time.Millisecond).Should(BeEmpty())

		By("not what another program changes")
		patch(ctx, configMap, `{"metadata":{"annotations":{"capstan.dev/drift":null}}}`)
		tracker.MarkVerified([]object.Snapshot{versionOf(ctx, config)})
		Eventually(verified).Should(ContainElement(config))
		patch(ctx, configMap, `{"data":{"key":"changed"}}`)
		Eventually(verified).ShouldNot(ContainElement(config))
	})

	It("waits for the watch to show what was just applied", func(ctx SpecContext) {
		settled(ctx)
		verify(ctx)
		Eventually(unverified).WithContext(ctx).Should(BeEmpty())
		ahead := versionOf(ctx, manager)
		ahead.ResourceVersion = following(ahead.ResourceVersion)
		unseen := versionOf(ctx, config)
		unseen.Object.Name, unseen.ResourceVersion = "unseen", unseen.ResourceVersion+"000"
		tracker.MarkVerified([]object.Snapshot{ahead, unseen})
		all := []object.Key{manager, unseen.Object}
		Expect(tracker.Unverified(ctx, all)).To(BeEmpty())
		Eventually(func(g Gomega) {
			report, err := tracker.Check(ctx, all)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(report.Message(namespace)).
				To(Equal("Deployment manager: has just been applied"), "a ConfigMap only has to exist")
		}).Should(Succeed(), "once the watch shows the Deployment")

		tracker.woken()
		patch(ctx, deployment, `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"7"}}}`)
		Eventually(tracker.woken).Should(BeNumerically(">", 0), "the watch shows it")
		Expect(tracker.Unverified(ctx, all)).To(BeEmpty())
	})

	It("looks at workloads until their watch shows them", func(ctx SpecContext) {
		settled(ctx)
		verify(ctx)

		report, err := tracker.Check(ctx, []object.Key{config, manager})
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Message(namespace)).To(Equal("Deployment manager: Available: 0/1"))
	})

	It("notices an object that was deleted before its kind was watched", func(ctx SpecContext) {
		verify(ctx)
		Expect(admin.Delete(ctx, configMap)).To(Succeed())
		Eventually(unverified).WithContext(ctx).Should(ConsistOf(config))
	})
})

var _ = Describe("Check of a workload", func() {
	var (
		namespace string
		tracker   *watched
		manager   object.Key
	)

	message := func(ctx context.Context) string {
		GinkgoHelper()

		report, err := tracker.Check(ctx, []object.Key{manager})
		Expect(err).NotTo(HaveOccurred())

		return report.Message(namespace)
	}

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		tracker = track(namespace)
		manager = named(appsv1.SchemeGroupVersion.WithKind("Deployment"), namespace, "manager")
	})

	It("names the pod that cannot be scheduled, and then the image that cannot be pulled", func(ctx SpecContext) {
		Expect(admin.Create(ctx, newDeployment(namespace))).To(Succeed())
		Eventually(message).WithContext(ctx).
			Should(MatchRegexp(`^Unschedulable: no nodes available .*\(pod manager-\S+\)$`))
		tracker.mu.Lock()
		Expect(tracker.wakes).To(ContainElement(BeNumerically(">", 0)), "to look again")
		tracker.mu.Unlock()

		pods := &corev1.PodList{}
		Expect(admin.List(ctx, pods, client.InNamespace(namespace))).To(Succeed())
		pod := &pods.Items[0]
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}
		Expect(admin.SubResource("binding").Create(ctx, pod, binding)).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", Image: "x",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}}}
		Expect(admin.Status().Update(ctx, pod)).To(Succeed()) // as a kubelet would
		Expect(message(ctx)).To(Equal(
			"container manager: ImagePullBackOff: image registry.example.com/manager:v9 (pod " + pod.Name + ")"))
	})

	It("names the quota that keeps pods from being created", func(ctx SpecContext) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
		Expect(admin.Create(ctx, quota)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			g.Expect(quota.Status.Hard).NotTo(BeEmpty())
		}).Should(Succeed())
		Expect(admin.Create(ctx, newDeployment(namespace))).To(Succeed())
		Eventually(message).WithContext(ctx).Should(And(
			HavePrefix("Deployment manager: its pods cannot be created: "),
			ContainSubstring("exceeded quota: none"),
		))
	})
})

var _ = Describe("Check of an object of others", func() {
	DescribeTable("says only to whom it belongs, and not why its pods do not run",
		func(ctx SpecContext, polled bool, marks map[string]string, message string) {
			namespace := newNamespace(ctx)
			hidden := newDeployment(namespace)
			hidden.Annotations = marks
			Expect(admin.Create(ctx, hidden)).To(Succeed())

			config := cluster.Config()
			if polled {
				config = restricted(ctx, namespace, "configmaps")
			}

			tracker := trackAs(config, namespace)
			all := []object.Key{named(appsv1.SchemeGroupVersion.WithKind("Deployment"), namespace, "manager")}

			check := func() string {
				report, err := tracker.Check(ctx, all)
				Expect(err).NotTo(HaveOccurred())
				Expect(report.Healthy()).To(BeFalse())
				Expect(report.Objects[0].Images).To(BeEmpty())

				return report.Objects[0].Message
			}

			Eventually(check).Should(Equal(message))
			Consistently(check, "6s").Should(Equal(message), "also once pods of an unhealthy workload would be read")
		},
		Entry("of another release", false,
			map[string]string{"meta.helm.sh/release-name": "another", "meta.helm.sh/release-namespace": "victim"},
			"belongs to release victim/another"),
		Entry("of another release, which is not watched", true,
			map[string]string{"meta.helm.sh/release-name": "another", "meta.helm.sh/release-namespace": "victim"},
			"belongs to release victim/another"),
		Entry("of no release", false, map[string]string{}, "exists, but does not belong to the release"),
	)
})
