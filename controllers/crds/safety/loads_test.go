package safety_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/semaphore"

	"github.com/capstan-project/capstan/controllers/crds/safety"
)

// TestCheckLoads: changes that are loaded are checked like others, and only as many at a time as agreed.
func TestCheckLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)

		load := func(context.Context) (safety.Change, error) {
			time.Sleep(time.Minute) // of the bubble's clock

			desired := v1alpha1()
			clusterScoped(desired)

			return safety.Change{Live: v1alpha1(), Desired: desired}, nil
		}
		deleted := func(context.Context) (safety.Change, error) { return safety.Change{}, nil }

		in := safety.Input{Comparing: semaphore.NewWeighted(2), Loads: []safety.Load{load, load, deleted, load, load}}
		began := time.Now()

		report, err := safety.Check(t.Context(), in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(report.Findings).To(HaveLen(4))
		g.Expect(report.Findings[0].Rule).To(Equal(safety.RuleScopeChanged))
		g.Expect(time.Since(began)).To(Equal(2 * time.Minute))

		failure := errors.New("no answer")

		in.Loads = append(in.Loads, func(context.Context) (safety.Change, error) { return safety.Change{}, failure })
		_, err = safety.Check(t.Context(), in)
		g.Expect(err).To(MatchError(failure))

		g.Expect(in.Comparing.TryAcquire(2)).To(BeTrue(), "everything is released")
	})
}
