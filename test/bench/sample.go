package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// sample is the state of the operator with a number of providers. All figures except the idle ones
// are totals since the start.
type sample struct {
	providers     int
	took          time.Duration // while providers were being installed
	cpu           time.Duration
	requests      map[string]int // by verb
	writes        int
	peak, settled int64 // memory, in bytes
	idleCPU       time.Duration
	idleWrites    int
	serverCPU     float64   // seconds of the API server, while providers were being installed
	serverMemory  float64   // of the API server, in bytes
	restart       restarted // of the last sample
}

// restarted is the cost of a new operator that finds everything installed.
type restarted struct {
	took, cpu time.Duration
	peak      int64 // memory, in bytes
	requests  int
	writes    int
}

func (s sample) allRequests() int {
	n := 0
	for _, count := range s.requests {
		n += count
	}

	return n
}

func inMebibytes[T int64 | float64](bytes T) float64 { return float64(bytes) / (1 << 20) }

// printSamples prints the tables of docs/performance.md.
func printSamples(samples []sample, idle time.Duration) {
	header := []string{
		"providers",
		"until all are Ready, s",
		"operator's CPU, s",
		"API server's CPU, s",
		"peak memory, MiB",
		"settled memory, MiB",
		"requests",
		"writes",
		fmt.Sprintf("writes in %.0f s idle", idle.Seconds()),
		"CPU in that time, s",
	}
	fmt.Printf("| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat("---:|", len(header)))

	for _, s := range samples {
		fmt.Printf(
			"| %d | %.1f | %.1f | %.1f | %.0f | %.0f | %d | %d | %d | %.2f |\n",
			s.providers,
			s.took.Seconds(),
			s.cpu.Seconds(),
			s.serverCPU,
			inMebibytes(s.peak),
			inMebibytes(s.settled),
			s.allRequests(),
			s.writes,
			s.idleWrites,
			s.idleCPU.Seconds(),
		)
	}

	last := samples[len(samples)-1]

	verbs := slices.Sorted(maps.Keys(last.requests))
	for i, verb := range verbs {
		verbs[i] = fmt.Sprintf("%s %d", verb, last.requests[verb])
	}

	fmt.Printf(
		"\nRequests with %d providers, by verb: %s. The API server had %.0f MiB of memory then.\n",
		last.providers,
		strings.Join(verbs, ", "),
		inMebibytes(last.serverMemory),
	)
	fmt.Printf(
		"An operator that starts with %d providers installed: %.0f s until it is quiet, %.1f s of CPU, at most %.0f MiB, "+
			"%d requests, %d of them writes.\n",
		last.providers,
		last.restart.took.Seconds(),
		last.restart.cpu.Seconds(),
		inMebibytes(last.restart.peak),
		last.restart.requests,
		last.restart.writes,
	)
}
