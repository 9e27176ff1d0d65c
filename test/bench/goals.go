package main

import "github.com/capstan-project/capstan/test/bench/report"

// goals returns the goals for what was measured. Those for five providers are for real ones.
func (s *setting) goals(r results) []report.Goal {
	var goals []report.Goal

	add := func(of stage, what string, limit float64, places int, measured report.Range) {
		goals = append(goals, report.Goal{
			Name: s.title(of) + ": " + what, Limit: limit, Places: places, Measured: measured,
		})
	}

	const available, accepted = "time ÷ kubectl's until all is available", "time ÷ kubectl's until all is applied"

	if s.real {
		add(install, available, 0.65, 2, r.ratio(install, kubectl, seconds))
		add(install, accepted, 0.65, 2, r.ratio(install, kubectl, applied))
		add(install, "time ÷ cluster-api-operator's", 0.6, 2, r.ratio(install, peer, seconds))
		add(install, "time ÷ their CRDs' alone", 1.15, 2, r.ratio(install, floor, seconds))
		add(install, "API requests", 250, 0, r.of(capstan, install, count))
		add(install, "peak memory, MB", 100, 0, r.of(capstan, install, megabytes))
		add(upgradeAll, available, 0.6, 2, r.ratio(upgradeAll, kubectl, seconds))
		add(upgradeAll, accepted, 0.6, 2, r.ratio(upgradeAll, kubectl, applied))
		add(upgradeAll, "CPU, s", 2, 2, r.of(capstan, upgradeAll, cpu))
		add(change, "time, s", 0.3, 2, r.of(capstan, change, seconds))
	}

	if s.many > 0 {
		each := func(value func(figures) float64) func(figures) float64 {
			return func(f figures) float64 { return value(f) / float64(s.many) }
		}

		// The goals are those for 500: half of 29 s of CPU, and 1,500 requests after a restart.
		add(installMany, "API requests for each", 15, 1, r.of(capstan, installMany, each(count)))
		add(installMany, "CPU for each, s", 0.029, 3, r.of(capstan, installMany, each(cpu)))
		add(restartMany, "API requests for each", 3, 1, r.of(capstan, restartMany, each(count)))
		add(restartMany, "time until it is quiet, s", 5, 1, r.of(capstan, restartMany, seconds))
	}

	return goals
}
