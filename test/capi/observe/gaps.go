package observe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/capstan-project/capstan/test/capi/canary"
)

// Event is what canaries noticed while something happened to managers.
type Event struct {
	Name string `json:"name"`
	// Seconds is how long it took until all managers ran as they should.
	Seconds float64 `json:"seconds"`
	// Longest is the longest gap of a canary in seconds, and Refused the most refused requests of a canary.
	Longest float64 `json:"longest"`
	Refused int     `json:"refused"`
	// Until is when the last gap had ended.
	Until time.Time `json:"-"`
}

// Add adds the summary of a canary.
func (e *Event) Add(s canary.Summary) {
	longest, _ := s.Longest()
	e.Longest = max(e.Longest, longest.Seconds())
	e.Refused = max(e.Refused, s.Failed())

	for _, gap := range s.Gaps {
		if gap.To.After(e.Until) {
			e.Until = gap.To
		}
	}
}

// Run is the events of one run, in their order.
type Run struct {
	// Name is what distinguishes it from other runs.
	Name   string  `json:"name"`
	Events []Event `json:"events"`
}

// Save writes the run to a file in a folder. It replaces an earlier run with its name.
func (r Run) Save(folder string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(folder, r.Name+".json"), data, 0o600)
}

// LoadRuns returns the runs in a folder, sorted by their names.
func LoadRuns(folder string) ([]Run, error) {
	files, err := fs.Glob(os.DirFS(folder), "*.json")
	if err != nil {
		return nil, err
	}

	var (
		runs   []Run
		failed []error
	)

	for _, file := range files {
		var run Run

		data, err := os.ReadFile(filepath.Join(folder, file))
		failed = append(failed, err, json.Unmarshal(data, &run))
		runs = append(runs, run)
	}

	return runs, errors.Join(failed...)
}

// Table returns a table in Markdown with a line for each event, and a column for each run.
func Table(runs []Run) string {
	var (
		names []string
		table strings.Builder
	)

	table.WriteString("| event |")

	for _, run := range runs {
		fmt.Fprintf(&table, " %s |", run.Name)

		for _, event := range run.Events {
			if !slices.Contains(names, event.Name) {
				names = append(names, event.Name)
			}
		}
	}

	table.WriteString("\n|---|" + strings.Repeat("---|", len(runs)) + "\n")

	for _, name := range names {
		fmt.Fprintf(&table, "| %s |", name)

		for _, run := range runs {
			fmt.Fprintf(&table, " %s |", run.cell(name))
		}

		table.WriteString("\n")
	}

	return table.String()
}

// cell returns what canaries noticed of an event, the worst if it happened several times; a dash if it did not happen.
func (r Run) cell(name string) string {
	var (
		worst Event
		times int
	)

	for _, event := range r.Events {
		if event.Name == name {
			worst.Seconds = max(worst.Seconds, event.Seconds)
			worst.Longest = max(worst.Longest, event.Longest)
			worst.Refused = max(worst.Refused, event.Refused)
			times++
		}
	}

	if times == 0 {
		return "–"
	}

	noticed := "none"
	if worst.Refused > 0 {
		noticed = fmt.Sprintf("%.1f s, %d refused", worst.Longest, worst.Refused)
	}

	return fmt.Sprintf("%s, of %.0f s", noticed, worst.Seconds)
}
