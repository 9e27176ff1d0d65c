package seats

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestTake(t *testing.T) {
	g := NewWithT(t)
	s := New(10)

	var ends []func()

	take := func(namespace string, count int) {
		for range count {
			done, err := s.Take(namespace)
			g.Expect(err).NotTo(HaveOccurred(), namespace)

			ends = append(ends, done)
		}
	}

	take("a", 3)

	_, err := s.Take("a")
	g.Expect(err).To(MatchError("the operator asks 3 other servers that resources of this kind in namespace a name, and " +
		"none has answered yet"))

	take("b", 1)
	take("c", 1)

	_, err = s.Take("d")
	g.Expect(err).To(MatchError("the operator asks 5 other servers that resources of this kind name, and none has " +
		"answered yet"))

	ends[0]()
	ends[0]() // which frees no other seat
	take("d", 1)

	_, err = s.Take("a")
	g.Expect(err).To(MatchError(ContainSubstring("resources of this kind name, ")), "it is not its namespace")

	for _, done := range ends {
		done()
	}

	g.Expect(s.taken).To(BeEmpty())
}

// One worker of two, or the only one, may wait.
func TestFewWorkers(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		g := NewWithT(t)
		s := New(workers)

		_, err := s.Take("a")
		g.Expect(err).NotTo(HaveOccurred())

		_, err = s.Take("b")
		g.Expect(err).To(MatchError(ContainSubstring("asks 1 other servers")))
	}
}
