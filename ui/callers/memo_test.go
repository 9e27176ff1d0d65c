package callers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestMemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		m := newMemo[int](2, time.Minute)

		var asked atomic.Int64

		ask := func(context.Context) (int, error) {
			time.Sleep(time.Second)
			return int(asked.Add(1)), nil
		}

		// Those who ask at the same time get one answer, even if the first of them leaves.
		leaving, leave := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer leave()

		for range 3 {
			go func() { _, _ = m.get(t.Context(), "a", ask) }()
		}

		_, err := m.get(leaving, "a", ask)
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		g.Expect(m.get(t.Context(), "a", ask)).To(Equal(1))

		time.Sleep(59 * time.Second)
		g.Expect(m.get(t.Context(), "a", ask)).To(Equal(1))
		time.Sleep(2 * time.Second)
		g.Expect(m.get(t.Context(), "a", ask)).To(Equal(2), "it has expired")

		g.Expect(m.get(t.Context(), "b", ask)).To(Equal(3))
		g.Expect(m.get(t.Context(), "c", ask)).To(Equal(4))
		g.Expect(m.known.Len()).To(Equal(2), "it is bounded")
		g.Expect(m.get(t.Context(), "a", ask)).To(Equal(5))

		fail := func(context.Context) (int, error) { return 0, errors.New("no") }
		_, err = m.get(t.Context(), "d", fail)
		g.Expect(err).To(MatchError("no"))
		g.Expect(m.get(t.Context(), "d", ask)).To(Equal(6), "errors are not remembered")

		time.Sleep(2 * time.Minute)
		g.Expect(m.known.Len()).To(BeZero(), "nothing is kept")
	})
}
