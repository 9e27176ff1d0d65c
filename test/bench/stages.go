package main

import (
	"fmt"
	"strings"
	"time"
)

// stage is a part of the life of five providers, or of many.
type stage string

const (
	install     stage = "install"
	change      stage = "change"
	correct     stage = "correct"
	upgradeOne  stage = "upgrade-one"
	rollBack    stage = "roll-back"
	upgradeAll  stage = "upgrade-all"
	idle        stage = "idle"
	restart     stage = "restart"
	installMany stage = "install-many"
	restartMany stage = "restart-many"
)

var stages = []stage{
	install, change, correct, upgradeOne, rollBack, upgradeAll, idle, restart, installMany, restartMany,
}

// figures are what a program took for a stage.
type figures struct {
	took             time.Duration // until everything was as wanted; 0 if it was not within the limit
	limit            time.Duration // 0 if everything was as wanted
	applied          time.Duration // of kubectl: until everything was applied
	requests, writes int
	cpu              time.Duration
	serverCPU        float64 // seconds of the API server
	peak             int64   // memory, in bytes
}

// stageFigures are the figures of the stages that a program was measured in, once.
type stageFigures map[stage]figures

// String returns the times of the stages.
func (m stageFigures) String() string {
	var texts []string

	for _, s := range stages {
		if f, measured := m[s]; measured {
			texts = append(texts, fmt.Sprintf("%s %.2f s, %d requests", s, f.took.Seconds(), f.requests))
		}
	}

	return strings.Join(texts, "; ")
}

// results are the figures of programs by stage, in the order of the rounds.
type results map[string]map[stage][]figures

func (r results) add(program string, measured stageFigures) {
	if r[program] == nil {
		r[program] = map[stage][]figures{}
	}

	for s, f := range measured {
		r[program][s] = append(r[program][s], f)
	}
}

// values returns a value of the figures of each round.
func (r results) values(program string, s stage, value func(figures) float64) []float64 {
	values := make([]float64, 0, len(r[program][s]))

	for _, f := range r[program][s] {
		values = append(values, value(f))
	}

	return values
}

// of returns the range of a value.
func (r results) of(program string, s stage, value func(figures) float64) Range {
	return newRange(r.values(program, s, value))
}

// ratio returns the range of Capstan's times divided by a baseline's times in the same round.
func (r results) ratio(s stage, baseline string, value func(figures) float64) Range {
	return ratios(r.values(capstan, s, seconds), r.values(baseline, s, value))
}

func seconds(f figures) float64 { return f.took.Seconds() }
func applied(f figures) float64 { return f.applied.Seconds() }
func allowed(f figures) float64 { return f.limit.Seconds() }
func cpu(f figures) float64     { return f.cpu.Seconds() }
func server(f figures) float64  { return f.serverCPU }
func count(f figures) float64   { return float64(f.requests) }
func writes(f figures) float64  { return float64(f.writes) }

// mebibytes returns the peak memory in MiB.
func mebibytes(f figures) float64 { return float64(f.peak) / (1 << 20) }

// megabytes returns the peak memory in MB.
func megabytes(f figures) float64 { return float64(f.peak) / 1e6 }
