package health

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

var (
	config = object.Key{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "capa-system", Name: "config",
	}
	aws = Owner{Provider: "infrastructure-aws", Release: "infrastructure-aws", Namespace: "capa-system"}
)

// configMap returns an object of the release in a version.
func configMap(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: config.Namespace, Name: config.Name, ResourceVersion: version,
		Labels: map[string]string{v1alpha2.ClusterctlProviderLabel: aws.Provider},
		Annotations: map[string]string{
			v1alpha2.HelmReleaseNameAnnotation: aws.Release, v1alpha2.HelmReleaseNamespaceAnnotation: aws.Namespace,
		},
	}}
}

// stillInformer shows the same all the time.
type stillInformer struct {
	toolscache.SharedIndexInformer

	store toolscache.Store
}

func (i stillInformer) HasSynced() bool                 { return true }
func (i stillInformer) GetStore() toolscache.Store      { return i.store }
func (i stillInformer) LastSyncResourceVersion() string { return "5" }

// TestWatchIsBehind: a watch may show what is older than what was recorded for a moment, and after a restore of etcd
// for good.
func TestWatchIsBehind(t *testing.T) {
	const moment, long = time.Second, time.Minute

	for name, c := range map[string]struct {
		live    client.Object // nil if it does not exist
		age     time.Duration
		message string
		// unverified is set if the object has to be compared again, and reported if its change wakes the provider.
		unverified, reported bool
	}{
		"that was just recorded":               {live: configMap("10"), age: moment},
		"as was recorded long ago":             {live: configMap("10"), age: long, reported: true},
		"a backup was restored":                {live: configMap("5"), age: long, unverified: true, reported: true},
		"a backup was restored a moment later": {live: configMap("5"), age: moment},
		"a backup without it was restored": {
			age: long, unverified: true, reported: true, message: "ConfigMap config: does not exist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reader, woken := fake.NewClientBuilder(), []time.Duration(nil)

			if c.live != nil {
				reader.WithObjects(c.live)
			}

			owner := aws
			owner.Reader = reader.Build()

			tracker := NewTracker(Options{Wake: func(_, _ string, delay time.Duration) { woken = append(woken, delay) }})
			defer tracker.Stop()

			shown := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
			g.Expect(shown.Add(seenOf(config, configMap("5")))).To(Succeed())

			at, _ := tracker.placeOf(config)
			tracker.watches[at] = &watch{informer: stillInformer{store: shown}, stop: func() {}}
			tracker.MarkVerified([]object.Snapshot{object.SnapshotOf(config, configMap("10"))})
			tracker.objects[config].since = time.Now().Add(-c.age)

			_, reported := tracker.matters(config, event{now: seenOf(config, configMap("5"))})
			g.Expect(reported).To(Equal(c.reported))

			report, err := tracker.Check(t.Context(), owner, []object.Key{config})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(report.Message(config.Namespace)).To(Equal(c.message))

			if c.age < startTime {
				g.Expect(woken).To(ConsistOf(pollUnhealthyTime), "to look again")
			}

			unverified, err := tracker.Unverified(t.Context(), owner, []object.Key{config})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(unverified) > 0).To(Equal(c.unverified))
		})
	}
}

// TestForgetsObjects: nothing is left of a release that is forgotten, whether its objects were watched or not, and
// whether others have objects of the same kind.
func TestForgetsObjects(t *testing.T) {
	for name, options := range map[string]Options{
		"in a remote cluster":            {Remote: true},
		"in a namespace without a watch": {Namespaces: []string{"capi-system"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options.Wake = func(string, string, time.Duration) {}

			tracker := NewTracker(options)
			defer tracker.Stop()

			owner, others := aws, aws
			owner.Reader = fake.NewClientBuilder().WithObjects(configMap("5")).Build()
			others.Provider, others.Reader = "infrastructure-azure", owner.Reader

			of := config
			of.Name = "of-others"

			for name, user := range map[object.Key]Owner{config: owner, of: others} {
				_, err := tracker.Unverified(t.Context(), user, []object.Key{name})
				g.Expect(err).NotTo(HaveOccurred())
			}

			tracker.Forget(owner.Provider, owner.Namespace)
			g.Expect(tracker.objects).To(HaveLen(1))
			g.Expect(tracker.objects).To(HaveKey(of))

			tracker.Forget(others.Provider, others.Namespace)
			g.Expect(tracker.objects).To(BeEmpty())
		})
	}
}
