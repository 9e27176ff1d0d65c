package health

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// TestStrangersRarelyWake: objects with the marks of a release that its provider has not looked at wake it at once, and
// then once in ten seconds, however often they change.
func TestStrangersRarelyWake(t *testing.T) {
	g := NewWithT(t)

	var woken []time.Duration

	tracker := NewTracker(Options{Wake: func(label, namespace string, delay time.Duration) {
		g.Expect(label + " " + namespace).To(Equal("infrastructure-aws capa-system"))

		woken = append(woken, delay)
	}})
	defer tracker.Stop()

	gvk := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	change := func(name, before, now string) {
		of := func(version string) *seen {
			o := &corev1.ConfigMap{}
			o.SetNamespace("tenant")
			o.SetName(name)
			o.SetResourceVersion(version)
			o.SetLabels(map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-aws"})
			o.SetAnnotations(map[string]string{v1alpha2.HelmReleaseNamespaceAnnotation: "capa-system"})

			return seenOf(object.Key{GroupVersionKind: gvk, Namespace: "tenant", Name: name}, o)
		}
		e := event{now: of(now)}

		if before != "" {
			e.before = of(before)
		}

		tracker.handle(gvk, e)
	}

	change("stranger", "", "1")

	for range 700 {
		change("stranger", "1", "2")
		change("another", "", "1")
	}

	g.Expect(woken).To(HaveLen(2))
	g.Expect(woken[0]).To(BeZero())
	g.Expect(woken[1]).To(BeNumerically("~", 10*time.Second, time.Second))

	key := object.Key{GroupVersionKind: gvk, Namespace: "tenant", Name: "own"}
	tracker.MarkVerified([]object.Snapshot{{Object: key, ResourceVersion: "1"}})

	woken = nil

	change("own", "1", "2")
	change("own", "2", "3")
	g.Expect(woken).To(HaveExactElements(BeZero(), BeZero()), "what it has looked at wakes it each time")

	later := time.Now().Add(2 * strangerTime)
	_, due := tracker.introduce("infrastructure-aws", "capa-system", later)
	g.Expect(due).To(BeFalse())
	g.Expect(tracker.strangers).To(HaveLen(1), "those of before are forgotten")
}
