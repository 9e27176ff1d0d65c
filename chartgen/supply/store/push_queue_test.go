package store

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/chart"
)

func TestPushQueue(t *testing.T) {
	g := NewWithT(t)

	var q pushQueue

	first := chartID{provider: "infrastructure-x", version: "v1.0.0", digest: "sha256:a"}
	second := chartID{provider: "infrastructure-x", version: "v1.1.0", digest: "sha256:b"}
	c := &chart.Chart{Files: []chart.File{{Data: make([]byte, 10)}}, CRDs: []chart.File{{Data: make([]byte, 5)}}}

	g.Expect(q.pending()).To(BeEmpty())
	g.Expect(q.add(first, c)).To(BeTrue())
	g.Expect(q.add(second, c)).To(BeTrue())
	g.Expect(q.add(second, c)).To(BeTrue(), "it is there already")
	g.Expect(q.pending()).To(And(HaveLen(2), HaveKeyWithValue(first, c)))
	g.Expect(q.size).To(Equal(30))

	q.remove(first)
	q.remove(first)
	g.Expect(q.pending()).To(HaveLen(1))
	q.remove(second)
	g.Expect(q.len()).To(BeZero())
	g.Expect(q.size).To(BeZero())

	q.wake()
	q.wake() // does not block
	g.Expect(q.wakeup()).To(Receive())
	g.Expect(q.wakeup()).NotTo(Receive())
}

func TestPushQueueIsBounded(t *testing.T) {
	id := func(i int) chartID { return chartID{version: fmt.Sprint(i)} }

	t.Run("in the number of charts", func(t *testing.T) {
		g := NewWithT(t)

		var q pushQueue

		for i := range maxPending {
			g.Expect(q.add(id(i), &chart.Chart{})).To(BeTrue())
		}

		g.Expect(q.add(id(maxPending), &chart.Chart{})).To(BeFalse())
		g.Expect(q.len()).To(Equal(maxPending))
	})
	t.Run("in their size", func(t *testing.T) {
		g := NewWithT(t)

		var q pushQueue

		large := &chart.Chart{Files: []chart.File{{Data: make([]byte, maxPendingSize/2)}}}
		g.Expect(q.add(id(1), large)).To(BeTrue())
		g.Expect(q.add(id(2), large)).To(BeTrue())
		g.Expect(q.add(id(3), &chart.Chart{Files: []chart.File{{Data: []byte("x")}}})).To(BeFalse())
		q.remove(id(1))
		g.Expect(q.add(id(3), large)).To(BeTrue())
	})
}
