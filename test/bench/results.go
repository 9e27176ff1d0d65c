package main

import (
	"fmt"
	"strings"
)

// titles are the names of the programs in tables.
var titles = map[string]string{
	capstan: "Capstan",
	kubectl: "`kubectl apply --server-side`",
	peer:    "cluster-api-operator",
	before:  "Capstan before",
	floor:   "their CRDs alone",
}

// tables returns what is printed: the table of the page, and the goals.
func (s *setting) tables(r results, format func(*Table) string) string {
	return fmt.Sprintf("%s\n\n%s\n%s", s.describe(), format(s.figures(r)), format(goalTable(s.goals(r))))
}

// describe returns a sentence about what was measured.
func (s *setting) describe() string {
	versions := make([]string, 0, len(s.older))

	for i, r := range s.older {
		version := r.Bundle.Version + " → " + s.newer[i].Bundle.Version
		versions = append(versions, fmt.Sprintf("%s %s", r.Bundle.Provider.Label, version))
	}

	return fmt.Sprintf("%d rounds, with %s; %d small providers.", s.rounds, strings.Join(versions, ", "), s.many)
}

// title returns the name of a stage in tables.
func (s *setting) title(of stage) string {
	one := func(place int) string { return s.older[place].Bundle.Provider.Label }

	return map[stage]string{
		install:     "install five providers",
		change:      "change the replicas of " + one(changed),
		correct:     "correct drift of " + one(changed),
		upgradeOne:  "upgrade " + one(upgraded),
		rollBack:    "roll it back",
		upgradeAll:  "upgrade all five at once",
		idle:        fmt.Sprintf("idle for %.0f s", s.idle.Seconds()),
		restart:     "restart the operator",
		installMany: fmt.Sprintf("install %d small providers", s.many),
		restartMany: fmt.Sprintf("restart with %d small providers", s.many),
	}[of]
}

// figures returns the table of all stages.
func (s *setting) figures(r results) *Table {
	table := &Table{Header: []string{
		"", "", "time, s", "Capstan's time ÷ this", "API requests", "of these, writes",
		"CPU, s", "peak memory, MiB", "API server's CPU, s",
	}, Numbers: 2}

	for _, stage := range stages {
		title := s.title(stage)

		for _, program := range []string{capstan, before, peer, kubectl, floor} {
			if len(r[program][stage]) == 0 {
				continue
			}

			table.Add(append([]string{title, titles[program]}, cells(r, program, stage)...)...)

			title = ""
		}
	}

	return table
}

// cells returns the cells of a row with numbers.
func cells(r results, program string, stage stage) []string {
	median := func(value func(figures) float64, places int) string {
		return fmt.Sprintf("%.*f", places, r.of(program, stage, value).Median)
	}

	took, ratio := "", ""

	switch of := r.of(program, stage, seconds); {
	case stage == idle:
	case of.Max == 0:
		took = fmt.Sprintf("not in %.0f", r.of(program, stage, allowed).Max)
	default:
		took = of.String(2)
	}

	if program != capstan && stage != idle {
		ratio = r.ratio(stage, program, seconds).String(2)
	}

	row := []string{took, ratio, median(count, 0), median(writes, 0)}
	if program == floor { // this process, which does other work, too
		return append(row, "", "", median(server, 1))
	}

	return append(row, median(cpu, 2), median(mebibytes, 0), median(server, 1))
}
