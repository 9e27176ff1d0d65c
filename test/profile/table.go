package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capstan-project/capstan/test/bed/tools"
)

// small is the time from which a program or a suite has a row of its own.
const small = time.Second

const others = "others"

// column is a column of the table of suites, which has the time of some programs.
type column struct {
	title    string
	programs []string
}

// columns are the columns between the name of a suite and its total; the last one has all other programs.
var columns = []column{
	{"tests", []string{testProgram}},
	{"API start", []string{startOf + tools.APIServer}},
	{"API server", []string{tools.APIServer}},
	{"etcd", []string{tools.Etcd}},
	{"controllers", []string{tools.ControllerManager, tools.Scheduler, tools.Kwok}},
	{"operator", []string{"operator"}},
	{others, nil},
}

// String returns a table by program and one by suite, with seconds of processor time.
func (p *profile) String() string {
	var out strings.Builder

	programs, suites, total := map[string]time.Duration{}, map[string]map[string]time.Duration{}, time.Duration(0)

	for use, taken := range p.used {
		programs[use.program] += taken
		total += taken

		if suites[use.suite] == nil {
			suites[use.suite] = map[string]time.Duration{}
		}

		suites[use.suite][columnOf(use.program)] += taken
	}

	fmt.Fprintf(&out, "\nProcessor time by program:\n\n%9s  %5s  %9s  program\n", "seconds", "%", "processes")

	rest := time.Duration(0)

	for _, name := range byTime(programs) {
		if programs[name] < small {
			rest += programs[name]
			continue
		}

		processes := ""
		if count := p.count[name]; count > 0 {
			processes = fmt.Sprint(count)
		}

		fmt.Fprintf(&out, "%9.1f  %5.1f  %9s  %s\n",
			programs[name].Seconds(), percent(programs[name], total), processes, name)
	}

	fmt.Fprintf(&out, "%9.1f  %5.1f  %9s  %s\n", rest.Seconds(), percent(rest, total), "", others)
	fmt.Fprintf(&out, "%9.1f  %5.1f  %9s  total\n", total.Seconds(), 100.0, "")
	writeSuites(&out, suites)

	return out.String()
}

func writeSuites(out *strings.Builder, suites map[string]map[string]time.Duration) {
	out.WriteString("\nProcessor time by suite, in seconds:\n\n    total")

	for _, column := range columns {
		fmt.Fprintf(out, "  %11s", column.title)
	}

	out.WriteString("  suite\n")

	totals, rest := map[string]time.Duration{}, map[string]time.Duration{}

	for suite, times := range suites {
		for _, taken := range times {
			totals[suite] += taken
		}
	}

	for _, suite := range byTime(totals) {
		if totals[suite] >= small {
			writeSuite(out, suite, suites[suite])
			continue
		}

		for title, taken := range suites[suite] {
			rest[title] += taken
		}
	}

	writeSuite(out, others, rest)
}

func writeSuite(out *strings.Builder, name string, times map[string]time.Duration) {
	total := time.Duration(0)
	for _, taken := range times {
		total += taken
	}

	fmt.Fprintf(out, "%9.1f", total.Seconds())

	for _, column := range columns {
		fmt.Fprintf(out, "  %11.1f", times[column.title].Seconds())
	}

	fmt.Fprintf(out, "  %s\n", name)
}

func columnOf(program string) string {
	for _, column := range columns {
		if slices.Contains(column.programs, program) {
			return column.title
		}
	}

	return others
}

func percent(part, total time.Duration) float64 {
	return 100 * part.Seconds() / max(total.Seconds(), tick.Seconds())
}

// byTime returns the keys, with the longest time first.
func byTime(times map[string]time.Duration) []string {
	return slices.SortedFunc(maps.Keys(times), func(a, b string) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), cmp.Compare(a, b))
	})
}
