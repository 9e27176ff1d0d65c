package sandbox

import (
	"context"
	"encoding/json"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// rendering renders charts by the children of one pool.
type rendering struct {
	g Gomega
	t *testing.T
	pool
}

func newRendering(t *testing.T) *rendering {
	t.Helper()

	r := &rendering{g: NewWithT(t), t: t}
	t.Cleanup(func() {
		for child := r.take(); child != nil; child = r.take() {
			child.end()
		}
	})

	return r
}

func (r *rendering) render(text string) {
	r.t.Helper()

	output, err := r.pool.render(r.t.Context(), encode(r.t, template(text)))
	r.g.Expect(err).NotTo(HaveOccurred())

	_, err = decode(output)
	r.g.Expect(err).NotTo(HaveOccurred())
}

func encode(t *testing.T, request Request) []byte {
	t.Helper()

	encoded, err := json.Marshal(request)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return encoded
}

// waiting returns the IDs of the processes that wait for a request.
func (r *rendering) waiting() []int {
	r.mu.Lock()
	defer r.mu.Unlock()

	ids := make([]int, 0, len(r.idle))
	for _, child := range r.idle {
		ids = append(ids, child.command.Process.Pid)
	}

	return ids
}

// TestChildRendersSeveralCharts: also after a chart that fails. Only a few children wait for charts.
func TestChildRendersSeveralCharts(t *testing.T) {
	r := newRendering(t)

	r.render("a: b")

	first := r.waiting()
	r.g.Expect(first).To(HaveLen(1))

	_, err := r.pool.render(t.Context(), encode(t, template(`{{ fail "wrong value" }}`)))
	r.g.Expect(err).NotTo(HaveOccurred(), "the error is the answer")
	r.render("a: c")
	r.g.Expect(r.waiting()).To(Equal(first))

	var group sync.WaitGroup
	for range 3 * maxIdle {
		group.Go(func() { r.render("a: d") })
	}

	group.Wait()
	r.g.Expect(len(r.waiting())).To(BeNumerically("<=", maxIdle))
}

// TestChildThatHasUsedMuch: each chart has all the time and memory that a child gets.
func TestChildThatHasUsedMuch(t *testing.T) {
	for name, text := range map[string]string{
		"time":   `{{ range untilStep 0 2000 1 }}{{ range untilStep 0 5000 1 }}{{ end }}{{ end }}`,
		"memory": `{{ $a := repeat 30000000 "x" }}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRendering(t)

			r.render("a: b")
			r.g.Eventually(func() []int {
				r.render(text)
				return r.waiting()
			}).WithTimeout(20 * time.Second).Should(BeEmpty())
			r.render("a: b")
		})
	}
}

// TestChildTriesOnce: a chart that takes too long does not take that time twice.
func TestChildTriesOnce(t *testing.T) {
	r := newRendering(t)

	used := func() time.Duration {
		var usage syscall.Rusage
		r.g.Expect(syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage)).To(Succeed())

		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}

	r.render("a: b")

	before := used()
	_, err := r.pool.render(t.Context(), encode(t, template(endless)))
	r.g.Expect(err).To(MatchError(ContainSubstring("5s of processor time")))
	r.g.Expect(used() - before).To(BeNumerically("<", cpuTime*3/2))
}

// TestChildThatIsGone: a chart does not fail because the system ended a process that waited.
func TestChildThatIsGone(t *testing.T) {
	r := newRendering(t)

	r.render("a: b")
	r.g.Expect(syscall.Kill(r.waiting()[0], syscall.SIGKILL)).To(Succeed())
	r.render("a: b")
}

// TestChildEnds: after a while without requests, and with the context of a request.
func TestChildEnds(t *testing.T) {
	r := newRendering(t)

	r.render("a: b")

	child := r.waiting()[0]
	r.g.Eventually(r.waiting, 5*idleTime).Should(BeEmpty())
	r.g.Expect(syscall.Kill(child, 0)).To(MatchError(syscall.ESRCH))

	r.render("a: b")
	child = r.waiting()[0]

	ctx, cancel := context.WithTimeout(t.Context(), idleTime/2)
	defer cancel()

	_, err := r.pool.render(ctx, encode(t, template(endless)))
	r.g.Expect(err).To(MatchError(context.DeadlineExceeded))
	r.g.Expect(syscall.Kill(child, 0)).To(MatchError(syscall.ESRCH))
	r.g.Expect(r.waiting()).To(BeEmpty())
}
