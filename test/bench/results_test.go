package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// twoRounds returns a setting and results of two rounds: the second has twice the times of the first.
func twoRounds() (*setting, results) {
	s := &setting{options: options{rounds: 2, many: 10, idle: time.Minute}, real: true}
	s.useSamples()

	r := results{}

	for _, factor := range []time.Duration{1, 2} {
		r.add(capstan, stageFigures{
			install: {
				took: factor * 5 * time.Second, requests: 240, writes: 100,
				cpu: 1500 * time.Millisecond, peak: 90 << 20, serverCPU: 4,
			},
			change:  {took: factor * 100 * time.Millisecond, requests: 30},
			correct: {took: factor * time.Second},
		})
		r.add(kubectl, stageFigures{
			install: {took: factor * 10 * time.Second, applied: factor * 8 * time.Second, requests: 120},
		})
		r.add(floor, stageFigures{install: {took: 2 * time.Second}})
		r.add(peer, stageFigures{correct: {limit: driftTimeout}})
	}

	r.add(capstan, stageFigures{
		idle:        {took: time.Minute, requests: 3, cpu: 100 * time.Millisecond, peak: 80 << 20},
		installMany: {took: time.Second, requests: 300, cpu: time.Second},
	})

	return s, r
}

func TestFigures(t *testing.T) {
	s, r := twoRounds()
	want := [][]string{
		{"install five providers", "Capstan", "7.50 (5.00–10.00)", "", "240", "100", "1.50", "90", "4.0"},
		{"", "`kubectl apply --server-side`", "15.00 (10.00–20.00)", "0.50", "120", "0", "0.00", "0", "0.0"},
		{"", "their CRDs alone", "2.00", "3.75 (2.50–5.00)", "0", "0", "", "", "0.0"},
		{"change the replicas of infrastructure-aws", "Capstan", "0.15 (0.10–0.20)", "", "30", "0", "0.00", "0", "0.0"},
		{"correct drift of infrastructure-aws", "Capstan", "1.50 (1.00–2.00)", "", "0", "0", "0.00", "0", "0.0"},
		{"", "cluster-api-operator", "not in 10", "", "0", "0", "0.00", "0", "0.0"},
		{"idle for 60 s", "Capstan", "", "", "3", "0", "0.10", "80", "0.0"},
		{"install 10 small providers", "Capstan", "1.00", "", "300", "0", "1.00", "0", "0.0"},
	}

	if diff := cmp.Diff(want, s.figures(r).Rows); diff != "" {
		t.Error(diff)
	}
}

func TestGoals(t *testing.T) {
	s, r := twoRounds()

	results := map[string]string{}
	for _, row := range goalTable(s.goals(r)).Rows {
		results[row[0]] = row[2] + " " + row[3]
	}

	for name, want := range map[string]string{
		"install five providers: time ÷ kubectl's until all is available":   "0.50 met",
		"install five providers: time ÷ kubectl's until all is applied":     "0.62 met",
		"install five providers: time ÷ cluster-api-operator's":             " not measured",
		"install five providers: time ÷ their CRDs' alone":                  "3.75 (2.50–5.00) missed",
		"install five providers: API requests":                              "240 met",
		"upgrade all five at once: time ÷ kubectl's until all is available": " not measured",
		"change the replicas of infrastructure-aws: time, s":                "0.15 (0.10–0.20) met",
		"install 10 small providers: API requests for each":                 "30.0 met",
		"restart with 10 small providers: API requests for each":            " not measured",
	} {
		if got := results[name]; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}

	s.real, s.many = false, 0
	if goals := s.goals(r); len(goals) > 0 {
		t.Errorf("small samples have the goals %v", goals)
	}
}

func TestTables(t *testing.T) {
	s, r := twoRounds()

	text := s.tables(r, (*Table).Markdown)
	for _, want := range []string{
		"2 rounds, with cluster-api v1.0.0 → v1.1.0, ", "\n\n|  |  | time, s | ", "\n\n| goal | at most | measured |  |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
