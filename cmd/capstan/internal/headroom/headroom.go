// Package headroom delays the first garbage collection until the program has taken 128 MiB. Most commands end before
// that. Otherwise a fifth of the CPU time of `chart build` would be collections, most of them before main, while the
// heap grows from nothing. After the first collection Go's defaults apply, and always if the environment variable
// GOGC or GOMEMLIMIT is set.
//
// Import it for its effect. It imports so little itself that it is initialized before most packages.
package headroom

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// size is the memory in bytes at which the first collection starts.
	size = 128 << 20
	// defaultPercent is Go's default of GOGC.
	defaultPercent = 100
)

// witness is an object that the first collection finds to be unreachable.
type witness struct{ _ *witness }

func init() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}

	debug.SetMemoryLimit(size)
	debug.SetGCPercent(-1)

	runtime.AddCleanup(&witness{}, func(percent int) {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(math.MaxInt64)
	}, defaultPercent)
}
