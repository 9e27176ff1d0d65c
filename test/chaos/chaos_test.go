// Package chaos takes the random walks of package test/model with the real operator on a real API
// server: its requests fail, its processes are killed and frozen, and users work on the release with helm and
// kubectl meanwhile. The oracle of the model decides whether the result is right.
package chaos

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/model"
)

// setting returns a number from an environment variable.
func setting(t *testing.T, variable string) int {
	number, err := strconv.Atoi(os.Getenv(variable))
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s must be a number", variable)

	return number
}

// TestChaos takes one walk. CHAOS_SEED and CHAOS_STEPS select it, and CHAOS_LOGS is a folder for the operators' logs.
func TestChaos(t *testing.T) {
	if os.Getenv("CHAOS_SEED") == "" {
		t.Skip("CHAOS_SEED is not set: a walk takes minutes")
	}

	g := NewWithT(t)
	ctx := t.Context()
	seed, steps := setting(t, "CHAOS_SEED"), setting(t, "CHAOS_STEPS")

	folder := os.Getenv("CHAOS_LOGS")
	if folder == "" {
		folder = t.TempDir()
	}

	program, err := harness.Program(ctx, root, t.TempDir(), harness.OperatorProgram)
	g.Expect(err).NotTo(HaveOccurred())

	w, err := newWorld(ctx, bedtest.Start(t, bed.Options{CRDs: harness.OwnCRDs()}), program, folder, uint64(seed))
	g.Expect(err).NotTo(HaveOccurred())

	t.Cleanup(func() {
		for _, o := range w.operators {
			g.Expect(o.stop()).To(Succeed())
		}
	})

	g.Expect(w.settle(ctx)).To(Succeed(), "before the walk")

	started := time.Now()

	for i, step := range model.Walk(uint64(seed), steps) {
		t.Logf("%5.1fs %d: %s", time.Since(started).Seconds(), i+1, step)

		if err := w.take(ctx, step); err != nil {
			t.Fatalf("after step %d, %s: %v\nTo repeat it: make chaos CHAOS_SEED=%d CHAOS_STEPS=%d",
				i+1, step, err, seed, steps)
		}
	}

	fmt.Printf("seed %d: %d steps in %s\n", seed, steps, time.Since(started).Round(time.Second))
}
