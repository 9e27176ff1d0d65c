package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestChangeIsAnnouncedOnce(t *testing.T) {
	g := NewWithT(t)
	times := arrivalTimes{}
	resource := &metav1.ObjectMeta{UID: "a", Generation: 1}

	times.of(resource, time.Unix(1000, 0))
	g.Expect(times.announce("a")).To(BeFalse(), "nothing has changed")

	times.announceLater("a")
	times.of(resource, time.Unix(1001, 0))
	g.Expect(times.announce("a")).To(BeTrue(), "a later reconcile knows what to announce")
	g.Expect(times.announce("a")).To(BeFalse())
}

func TestArrivalTimes(t *testing.T) {
	g := NewWithT(t)
	times := arrivalTimes{}
	first := time.Unix(1000, 0)
	resource := &metav1.ObjectMeta{UID: "a", Generation: 1}

	g.Expect(times.of(resource, first)).To(Equal(first))
	g.Expect(times.of(resource, first.Add(time.Second))).To(Equal(first), "it is the same change")

	other := &metav1.ObjectMeta{UID: "b", Generation: 1}
	g.Expect(times.of(other, first.Add(time.Second))).To(Equal(first.Add(time.Second)))

	resource.Generation = 2
	g.Expect(times.of(resource, first.Add(time.Minute))).To(Equal(first.Add(time.Minute)), "it has changed again")

	times.forget(resource.UID)
	g.Expect(times.of(resource, first.Add(time.Hour))).To(Equal(first.Add(time.Hour)))
	g.Expect(times.of(other, first.Add(time.Hour))).To(Equal(first.Add(time.Second)))
}
