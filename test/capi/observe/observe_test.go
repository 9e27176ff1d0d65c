package observe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
		g.Expect(c.Summarize().Gaps).To(BeEmpty(), "a gap counts when it has ended")

		time.Sleep(3 * time.Second)

		s := c.Summarize()
		g.Expect(s.Gaps).To(HaveLen(2))
		g.Expect(s.Gaps[0].Attempts).To(Equal(5))
		g.Expect(s.Longest()).To(Equal(time.Second))
		g.Expect(s.String()).To(ContainSubstring("15 attempts, 2 gaps: 1.0 s, 0.2 s (connection refused)"))

		time.Sleep(7 * time.Second)
		g.Expect(c.Summarize().Longest()).To(BeNumerically("~", attemptTimeout, interval))

		cancel()
		synctest.Wait()

		c.Summarize()
		time.Sleep(time.Second)
		g.Expect(c.Summarize().Attempts).To(BeZero(), "the canary has ended")
	})
}

func TestLives(t *testing.T) {
	object := func(kind, name, uid, phase string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
		o.SetKind(kind)
		o.SetNamespace("default")
		o.SetName(name)
		o.SetUID(types.UID(uid))

		return o
	}

	for _, test := range []struct {
		name    string
		observe func(*Lives)
		lost    []string
	}{
		{"new objects become complete", func(l *Lives) {
			l.Observe(object("Machine", "b", "2", ""))
			l.Observe(object("Machine", "b", "2", "Provisioned"))
			l.Observe(object("Machine", "b", "2", "Running"))
		}, nil},
		{"a phase is lost", func(l *Lives) {
			l.Observe(object("Machine", "a", "1", "Failed"))
			l.Observe(object("Machine", "a", "1", "Failed"))
		}, []string{`Machine default/a changed from Running to "Failed"`}},
		{"an object is replaced", func(l *Lives) {
			l.Observe(object("Machine", "a", "9", "Pending"))
		}, []string{"Machine default/a was replaced"}},
		{"an object is deleted", func(l *Lives) {
			l.ObserveDeletion(object("Machine", "a", "1", "Running"))
		}, []string{"Machine default/a was deleted"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := &Lives{}
			l.Observe(object("Cluster", "a", "0", "Provisioned"))
			l.Observe(object("Machine", "a", "1", "Running"))
			test.observe(l)
			NewWithT(t).Expect(l.Lost()).To(Equal(test.lost))
		})
	}

	l := &Lives{}
	l.Observe(object("Cluster", "a", "0", "Provisioned"))
	l.Observe(object("Machine", "a", "1", "Running"))
	l.Observe(object("Machine", "b", "2", "Pending"))
	NewWithT(t).Expect([]int{l.Complete("Cluster"), l.Complete("Machine")}).To(Equal([]int{1, 1}))
}
