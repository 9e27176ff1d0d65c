package main

import (
	"fmt"
	"time"

	"github.com/capstan-project/capstan/test/bench/report"
)

// figures are what an operator needs for a stage.
type figures struct {
	took                 time.Duration
	cpu                  time.Duration
	peak, settled        int64 // memory, in bytes
	remote, remoteWrites int   // requests to targets
	bytes                int64 // from and to targets
	local, localWrites   int   // requests to the hub's API server
}

func (f figures) add(other figures) figures {
	f.took = max(f.took, other.took)
	f.cpu += other.cpu
	f.peak += other.peak
	f.settled += other.settled
	f.remote += other.remote
	f.remoteWrites += other.remoteWrites
	f.bytes += other.bytes
	f.local += other.local
	f.localWrites += other.localWrites

	return f
}

// result is what was measured with a number of targets: the figures of each operator by stage, and the seconds until
// drift was corrected.
type result struct {
	targets                int
	install, idle, upgrade []figures
	drift                  report.Range
}

// String describes the installation and the drift.
func (r result) String() string {
	all := sum(r.install)

	return fmt.Sprintf("%d targets: %.0f s, %.0f MiB, drift %s s", r.targets, all.took.Seconds(), mebibytes(all.settled),
		r.drift.String(1))
}

func sum(all []figures) figures {
	var total figures
	for _, f := range all {
		total = total.add(f)
	}

	return total
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// tables returns the tables of docs/performance.md as Markdown.
func tables(results []result, o options) string {
	work := &report.Table{Header: []string{
		"", "targets", "time, s", "CPU, s", "peak memory, MiB", "settled memory, MiB", "requests to targets",
		"of these, writes", "MiB to and from targets", "requests to the hub", "of these, writes",
	}, Numbers: 1}
	idle := &report.Table{Header: []string{
		"targets", "CPU, % of a core", "settled memory, MiB", "requests to targets per minute", "of these, writes",
		"KiB to and from targets per minute", "requests to the hub per minute", "of these, writes",
	}}
	drift := &report.Table{Header: []string{"targets", "with drift", "median, s", "longest, s"}}

	for _, r := range results {
		eachRow(r.targets, r.install, func(name string, f figures) { work.Add(f.work("install", name)...) })
		eachRow(r.targets, r.idle, func(name string, f figures) { idle.Add(f.rest(name, o.idle)...) })
		drift.Add(fmt.Sprint(r.targets), fmt.Sprint(r.drift.Count), fmt.Sprintf("%.1f", r.drift.Median),
			fmt.Sprintf("%.1f", r.drift.Max))
	}

	for _, r := range results {
		eachRow(r.targets, r.upgrade, func(name string, f figures) { work.Add(f.work("upgrade", name)...) })
	}

	return fmt.Sprintf("Install, and upgrade all at once:\n\n%s\nIdle for %.0f s:\n\n%s\nUntil drift is corrected:\n\n%s",
		work.Markdown(), o.idle.Seconds(), idle.Markdown(), drift.Markdown())
}

// eachRow calls add for the sum of the operators' figures and, if there are several operators, for those of each.
func eachRow(targets int, operators []figures, add func(name string, f figures)) {
	add(fmt.Sprint(targets), sum(operators))

	if len(operators) == 1 {
		return
	}

	for i, f := range operators {
		add(fmt.Sprintf("%d, operator %d", targets, i+1), f)
	}
}

func (f figures) work(stage, name string) []string {
	return []string{
		stage, name, fmt.Sprintf("%.1f", f.took.Seconds()), fmt.Sprintf("%.1f", f.cpu.Seconds()),
		fmt.Sprintf("%.0f", mebibytes(f.peak)), fmt.Sprintf("%.0f", mebibytes(f.settled)),
		fmt.Sprint(f.remote), fmt.Sprint(f.remoteWrites), fmt.Sprintf("%.1f", mebibytes(f.bytes)),
		fmt.Sprint(f.local), fmt.Sprint(f.localWrites),
	}
}

func (f figures) rest(name string, period time.Duration) []string {
	perMinute := func(count float64) string { return fmt.Sprintf("%.1f", count/period.Minutes()) }

	return []string{
		name, fmt.Sprintf("%.2f", 100*f.cpu.Seconds()/period.Seconds()), fmt.Sprintf("%.0f", mebibytes(f.settled)),
		perMinute(float64(f.remote)), perMinute(float64(f.remoteWrites)), perMinute(float64(f.bytes) / (1 << 10)),
		perMinute(float64(f.local)), perMinute(float64(f.localWrites)),
	}
}
