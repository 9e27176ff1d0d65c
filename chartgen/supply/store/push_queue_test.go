package store

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestPushQueue(t *testing.T) {
	g := NewWithT(t)

	var q pushQueue

	first := chartID{namespace: "default", provider: "infrastructure-x", version: "v1.0.0", digest: "sha256:a"}
	second := chartID{namespace: "default", provider: "infrastructure-x", version: "v1.1.0", digest: "sha256:b"}

	g.Expect(q.pending()).To(BeEmpty())
	g.Expect(q.contains(first)).To(BeFalse())

	q.markPending(first)
	q.markPending(second)
	g.Expect(q.pending()).To(ConsistOf(first, second))

	q.markPushed(first)
	g.Expect(q.contains(first)).To(BeTrue())
	g.Expect(q.pending()).To(ConsistOf(second))

	q.remove(func(id chartID) bool { return id == second })
	g.Expect(q.pending()).To(BeEmpty())
	g.Expect(q.contains(second)).To(BeFalse())

	q.wake()
	q.wake() // does not block
	g.Expect(q.wakeup()).To(Receive())
	g.Expect(q.wakeup()).NotTo(Receive())
}
