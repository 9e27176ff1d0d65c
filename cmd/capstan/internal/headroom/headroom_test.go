package headroom

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"

	. "github.com/onsi/gomega"
)

// garbage is where the test allocates, so that the compiler does not optimize it away.
var garbage []byte

func TestFirstCollection(t *testing.T) {
	g := NewWithT(t)

	var stats runtime.MemStats

	for runtime.ReadMemStats(&stats); stats.NumGC == 0; runtime.ReadMemStats(&stats) {
		g.Expect(stats.TotalAlloc).To(BeNumerically("<", 2*size), "nothing is collected")

		garbage = make([]byte, 1<<20)
	}

	g.Expect(stats.TotalAlloc).To(BeNumerically(">", size/2), "collected too early")

	g.Eventually(func() int64 { return debug.SetMemoryLimit(-1) }).Should(BeEquivalentTo(int64(math.MaxInt64)))
	g.Expect(debug.SetGCPercent(defaultPercent)).To(Equal(defaultPercent))
}
