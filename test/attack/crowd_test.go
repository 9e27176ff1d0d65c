package attack

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// crowdSize is how many objects a crowd has: together they are as large as the operator's memory.
const crowdSize = 350

// crowd starts the operator among large objects of people who need not have permissions for providers, in a namespace
// without and then with a provider. It has the memory that the chart gives it, and serves others.
func (w *world) crowd(t *testing.T) {
	if os.Getenv("CROWDS") == "" {
		t.Skip("CROWDS is not set: an API server needs minutes for a crowd")
	}

	w.sweep(t)

	const tried = "ConfigMaps and Secrets as large as possible, with the label of a provider and like records of a release"

	t.Run(tried, func(t *testing.T) {
		w.run(t, attempt{tried, (*arena).outlast})
	})
}

// outlast returns how much memory the operator needed at most.
func (a *arena) outlast() string {
	kills := a.group.kills()
	s := small{a.room(), a.name, "v1.0.0", ""}

	a.together(func(number int) error { return a.admin.Create(a.ctx, s.large(number)) })
	defer a.together(func(number int) error { return a.admin.Delete(a.ctx, s.large(number)) })

	without := a.restartAmong()

	a.create(s.configMap(), s.resource())
	a.outcome(s.resource())

	defer a.abandon(a, s.resource())

	with := max(a.operator.Load().PeakMemory(), a.restartAmong())

	a.Expect(a.group.kills()).To(Equal(kills), "the operator was killed for its memory")

	return fmt.Sprintf("others are served; the operator needs %d MiB at most, and %d MiB if the namespace has a provider",
		without>>20, with>>20)
}

// together does something with each object of a crowd, by its number.
func (a *arena) together(do func(int) error) {
	a.Helper()

	var group errgroup.Group

	group.SetLimit(8)

	for n := range crowdSize {
		group.Go(func() error { return do(n + 1) })
	}

	a.Expect(group.Wait()).To(Succeed())
}

// restartAmong restarts the operator, waits until it serves others, and returns how much memory that took at most.
func (a *arena) restartAmong() int64 {
	a.Helper()

	restarts, kills := a.restarts.Load(), a.group.kills()
	a.Expect(a.operator.Load().Stop()).To(Succeed())
	a.Eventually(a.restarts.Load).Should(BeNumerically(">", restarts))

	s := small{victim, fmt.Sprintf("other-%d", a.number.Add(1)), "v1.0.0", ""}
	p := s.resource()
	a.Expect(a.admin.Create(a.ctx, s.configMap())).To(Succeed())
	a.Expect(a.admin.Create(a.ctx, p)).To(Succeed())
	a.Eventually(func(g Gomega) string {
		g.Expect(a.admin.Get(a.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		return readyReason(p)
	}).WithTimeout(2*time.Minute).Should(HavePrefix(v1alpha2.HealthyReason), func() string {
		return fmt.Sprintf("others are not served; the operator was killed %d times", a.group.kills()-kills)
	})
	a.Expect(a.restarts.Load()).To(Equal(restarts+1), "the operator had to be restarted")
	a.Expect(a.admin.Delete(a.ctx, p)).To(Succeed())

	return a.operator.Load().PeakMemory()
}

// large returns an object of the crowd: a ConfigMap, or a Secret like a record of the provider's release.
func (s small) large(number int) client.Object {
	if number%2 == 0 {
		return &corev1.ConfigMap{ObjectMeta: largeMetadata(s.namespace, fmt.Sprintf("crowd-%d", number))}
	}

	m := largeMetadata(s.namespace, fmt.Sprintf("sh.helm.release.v1.infrastructure-%s.v%d", s.name, number))
	m.Labels["owner"], m.Labels["name"] = "helm", "infrastructure-"+s.name
	m.Labels["version"], m.Labels["status"] = strconv.Itoa(number), "superseded"

	return &corev1.Secret{ObjectMeta: m, Type: "helm.sh/release.v1"}
}

// largeMetadata returns metadata with some 1.2 MiB of labels and annotations.
func largeMetadata(namespace, name string) metav1.ObjectMeta {
	m := named(namespace, name)
	m.Labels = map[string]string{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(steady.resource())}
	m.Annotations = map[string]string{"crowd": strings.Repeat("x", 200<<10)}

	part := strings.Repeat("x", 60)
	prefix := strings.Join([]string{part, part, part, part}, ".")

	for n := range 2800 {
		m.Labels[fmt.Sprintf("%s/%063d", prefix, n)] = part
	}

	return m
}
