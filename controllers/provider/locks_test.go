package provider

import (
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

func TestLocks(t *testing.T) {
	g := NewWithT(t)

	var (
		l      locks
		group  sync.WaitGroup
		counts [2]int
	)

	for i := range 100 {
		group.Go(func() {
			defer l.lock([]string{"here", "there"}[i%2])()

			counts[i%2]++
		})
	}

	group.Wait()
	g.Expect(counts).To(Equal([2]int{50, 50}), "one user of a key at a time")
	g.Expect(l.byKey).To(BeEmpty(), "what nothing uses is forgotten")

	unlock := l.lock("here")
	l.lock("there")() // does not wait for the other key
	g.Expect(l.byKey).To(HaveLen(1))
	unlock()
	g.Expect(l.byKey).To(BeEmpty())
}
