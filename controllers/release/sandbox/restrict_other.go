//go:build !linux

package sandbox

import "time"

// restrict does nothing: the operator runs on Linux only. The command line has the time limit and Go's
// limit of memory elsewhere.
func restrict() error { return nil }

// processorTime returns a time that is too long for another chart.
func processorTime() time.Duration { return cpuTime }
