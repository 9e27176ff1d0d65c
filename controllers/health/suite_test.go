package health_test

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness/suite"
)

var (
	cluster *bed.Bed
	admin   client.Client
)

func TestHealth(t *testing.T) {
	suite.Suite{Name: "Health"}.Run(t)
}

var _ = BeforeSuite(func(SpecContext) {
	cluster = bedtest.Start(GinkgoT(), bed.Options{Nodes: -1, WithoutCertManager: true, WithoutAudit: true})

	var err error

	admin, err = client.New(cluster.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(15*time.Minute))

// watched is a tracker of one release, with the delays of its wake calls.
type watched struct {
	*health.Tracker
	owner health.Owner
	mu    sync.Mutex
	wakes []time.Duration
}

// Check returns the health of objects of the release.
func (w *watched) Check(ctx context.Context, objects []object.Key) (health.Report, error) {
	return w.Tracker.Check(ctx, w.owner, objects)
}

// Unverified returns the objects of the release that are not verified.
func (w *watched) Unverified(ctx context.Context, objects []object.Key) ([]object.Key, error) {
	return w.Tracker.Unverified(ctx, w.owner, objects)
}

// track returns a tracker of a namespace's objects, until the end of the test.
func track(namespace string) *watched { return trackAs(cluster.Config(), namespace) }

// trackAs is like track for the user of a configuration.
func trackAs(config *rest.Config, namespace string) *watched {
	GinkgoHelper()

	watcher, err := client.NewWithWatch(config, client.Options{Scheme: clientgoscheme.Scheme})
	Expect(err).NotTo(HaveOccurred())

	w := &watched{owner: health.Owner{Provider: namespace, Release: namespace, Namespace: namespace, Reader: admin}}
	wake := func(provider, in string, after time.Duration) {
		if provider != namespace || in != namespace {
			return
		}

		w.mu.Lock()
		defer w.mu.Unlock()

		w.wakes = append(w.wakes, after)
	}
	w.Tracker = health.NewTracker(health.Options{Client: watcher, Wake: wake})
	DeferCleanup(w.Stop)

	return w
}

// woken returns how many calls since the last time had no delay.
func (w *watched) woken() int {
	w.mu.Lock()
	defer w.mu.Unlock()

	n := 0

	for _, after := range w.wakes {
		if after == 0 {
			n++
		}
	}

	w.wakes = nil

	return n
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "health-"}}
	Expect(admin.Create(ctx, ns)).To(Succeed())

	return ns.Name
}

// owned returns the metadata of an object of the namespace's release.
func owned(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{v1alpha2.ClusterctlProviderLabel: namespace},
		Annotations: map[string]string{"meta.helm.sh/release-name": namespace, "meta.helm.sh/release-namespace": namespace},
	}
}

func named(kind schema.GroupVersionKind, namespace, name string) object.Key {
	return object.Key{GroupVersionKind: kind, Namespace: namespace, Name: name}
}
