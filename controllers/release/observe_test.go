package release_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/test/bed"
)

// cachedRecords is a cache of Helm's records that is as old as the test wants.
type cachedRecords struct {
	metadata metadata.Interface
	items    []metav1.PartialObjectMetadata
}

func (c *cachedRecords) list(_ context.Context, release types.NamespacedName) (
	records []metav1.PartialObjectMetadata, known bool,
) {
	for _, item := range c.items {
		if item.Namespace == release.Namespace {
			records = append(records, item)
		}
	}

	return records, true
}

// catchUp brings the cache up to date.
func (c *cachedRecords) catchUp(ctx context.Context, namespace string) {
	GinkgoHelper()

	list, err := c.metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).
		List(ctx, metav1.ListOptions{LabelSelector: "owner=helm"})
	Expect(err).NotTo(HaveOccurred())

	c.items = list.Items
}

var _ = Describe("The history of a release comes from the cache", func() {
	var (
		namespace string
		cache     *cachedRecords
		engine    *release.Engine
		spec      release.Spec
		lists     func() int
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		cache = &cachedRecords{metadata: metadata.NewForConfigOrDie(apiServer.Config())}
		user := "counted-" + namespace
		config, err := apiServer.ConfigFor(user)
		Expect(err).NotTo(HaveOccurred())

		engine = engineFor(config, release.Options{Records: cache.list})
		spec = specOf(namespace, "1.0.0", configMap("a", ""))
		lists = func() int {
			requests, err := apiServer.Requests(func(r bed.Request) bool {
				return r.User == user && r.Verb == "list" && r.Resource == "secrets"
			})
			Expect(err).NotTo(HaveOccurred())

			return len(requests)
		}
	})

	It("has no time in the future", func(ctx SpecContext) {
		mustApply(ctx, engine, spec)

		future := metav1.NewTime(time.Now().Add(24 * time.Hour))
		secrets := client.CoreV1().Secrets(namespace)
		record, err := secrets.Get(ctx, helm.RecordName(spec.Release.Name, 1), metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		record.ManagedFields[0].Time = &future
		record.Annotations = map[string]string{"release.test/other": "change"}
		record, err = secrets.Update(ctx, record, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(storage.LastWrite(record.ManagedFields).Time).To(BeTemporally("~", future.Time, time.Minute), "any writer can")

		Expect(observe(ctx, engine, spec).Revision.LastTransitionTime.Time).To(BeTemporally("~", time.Now(), time.Minute))
	})

	It("but not while the cache lags behind what the engine wrote", func(ctx SpecContext) {
		Expect(observe(ctx, engine, spec).State).To(Equal(state.Absent))
		Expect(mustApply(ctx, engine, spec).Revision).To(Equal(1))
		Consistently(lists, "200ms").Should(BeZero(), "there are no records that the action could read")

		Expect(observe(ctx, engine, spec).State).To(Equal(state.InSync))
		Eventually(lists).Should(Equal(1), "the cache does not have the revision yet")

		cache.catchUp(ctx, namespace)

		revision := observe(ctx, engine, spec).Revision
		Expect(engine.Read(ctx, spec.Release, revision)).NotTo(BeNil())
		Consistently(lists, "200ms").Should(Equal(1))
	})

	It("including what other programs do", func(ctx SpecContext) {
		Expect(mustApply(ctx, engine, spec).Revision).To(Equal(1))
		cache.catchUp(ctx, namespace)
		observe(ctx, engine, spec)

		before := lists()

		run(ctx, "helm", "rollback", name, "1", "-n", namespace)
		cache.catchUp(ctx, namespace)
		Expect(observe(ctx, engine, spec).Revision.Number).To(Equal(2))

		run(ctx, "helm", "uninstall", name, "-n", namespace)
		Expect(observe(ctx, engine, spec).Revision.Number).To(Equal(2), "the cache lags behind")
		cache.catchUp(ctx, namespace)
		Expect(observe(ctx, engine, spec).State).To(Equal(state.Absent))
		Consistently(lists, "200ms").Should(Equal(before))
	})

	It("and an action on an outdated one does nothing", func(ctx SpecContext) {
		Expect(mustApply(ctx, engine, spec).Revision).To(Equal(1))
		cache.catchUp(ctx, namespace)
		run(ctx, "helm", "rollback", name, "1", "-n", namespace)

		next := specOf(namespace, "1.1.0", configMap("b", ""))
		_, err := applyObserved(ctx, engine, next, observe(ctx, engine, next))
		Expect(err).To(MatchError(storage.ErrChanged))

		Expect(observe(ctx, engine, next).Revision.Number).To(Equal(2), "after that, the history is read again")
		Expect(mustApply(ctx, engine, next).Revision).To(Equal(3))
	})
})
