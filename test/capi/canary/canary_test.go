package canary

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestCanary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()

		// No answer from second 1 to second 2, and again at second 3; at second 5 an answer that takes longer than
		// an attempt may.
		c := Start(ctx, "core", func(ctx context.Context) error {
			switch at := time.Since(begin); {
			case at >= time.Second && at < 2*time.Second:
				return errors.New(`webhook failed: Post "https://a.b.svc:443/convert?timeout=30s": connection refused`)
			case at == 3*time.Second:
				return errors.New("x509")
			case at == 5*time.Second:
				<-ctx.Done()
				return ctx.Err()
			}

			return nil
		})

		time.Sleep(900 * time.Millisecond)
		g.Expect(c.Answers()).To(BeTrue())
		g.Expect(c.Summarize()).To(Equal(Summary{Canary: "core", Attempts: 5}))

		time.Sleep(600 * time.Millisecond)
		g.Expect(c.Answers()).To(BeFalse())

		open := c.Summarize()
		g.Expect(open.Failed()).To(Equal(3), "a gap counts before it has ended")
		g.Expect(open.Lengths()).To(Equal("0.4 s"))
		g.Expect(c.Answers()).To(BeFalse(), "there was no attempt since the summary")

		time.Sleep(3 * time.Second)

		s := c.Summarize()
		g.Expect(s.Failed()).To(Equal(3))
		g.Expect(s.String()).To(ContainSubstring("15 attempts, 3 failed, gaps: 0.4 s, 0.2 s (connection refused)"))

		time.Sleep(7 * time.Second)

		length, reason := c.Summarize().Longest()
		g.Expect(length).To(BeNumerically("~", attemptTimeout, Interval))
		g.Expect(reason).To(Equal("context deadline exceeded"))

		cancel()
		synctest.Wait()

		c.Summarize()
		time.Sleep(time.Second)
		g.Expect(c.Summarize().Attempts).To(BeZero(), "the canary has ended")
	})
}
