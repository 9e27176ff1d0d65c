package main

// goals returns limits for what was measured: what it was when they were set, and some room, so that a regression is
// noticed. Those for five providers are for real ones.
func (s *setting) goals(r results) []goal {
	var goals []goal

	add := func(of stage, what string, limit float64, places int, measured Range) {
		goals = append(goals, goal{
			Name: s.title(of) + ": " + what, Limit: limit, Places: places, Measured: measured,
		})
	}

	const available, accepted = "time ÷ kubectl's until all is available", "time ÷ kubectl's until all is applied"

	if s.real {
		add(install, available, 0.85, 2, r.ratio(install, kubectl, seconds))
		add(install, accepted, 0.95, 2, r.ratio(install, kubectl, applied))
		add(install, "time ÷ cluster-api-operator's", 0.7, 2, r.ratio(install, peer, seconds))
		add(install, "time ÷ their CRDs' alone", 1.75, 2, r.ratio(install, floor, seconds))
		add(install, "API requests", 305, 0, r.of(capstan, install, count))
		add(install, "CPU, s", 1.7, 2, r.of(capstan, install, cpu))
		add(install, "peak memory, MB", 130, 0, r.of(capstan, install, megabytes))
		add(upgradeAll, available, 1.05, 2, r.ratio(upgradeAll, kubectl, seconds))
		add(upgradeAll, accepted, 1.2, 2, r.ratio(upgradeAll, kubectl, applied))
		add(upgradeAll, "time ÷ cluster-api-operator's", 0.65, 2, r.ratio(upgradeAll, peer, seconds))
		add(upgradeAll, "API requests", 275, 0, r.of(capstan, upgradeAll, count))
		add(upgradeAll, "CPU, s", 1.6, 2, r.of(capstan, upgradeAll, cpu))
		add(upgradeOne, available, 1.4, 2, r.ratio(upgradeOne, kubectl, seconds))
		add(rollBack, available, 1.1, 2, r.ratio(rollBack, kubectl, seconds))
		add(change, "time, s", 0.5, 2, r.of(capstan, change, seconds))
	}

	if s.many > 0 {
		each := func(value func(figures) float64) func(figures) float64 {
			return func(f figures) float64 { return value(f) / float64(s.many) }
		}

		// The limits are those for 100: with more, what does not depend on their number is spread over them.
		add(installMany, "API requests for each", 32, 1, r.of(capstan, installMany, each(count)))
		add(installMany, "CPU for each, s", 0.075, 3, r.of(capstan, installMany, each(cpu)))
		add(restartMany, "API requests for each", 12, 1, r.of(capstan, restartMany, each(count)))
		add(restartMany, "time for each until it is quiet, s", 0.04, 3, r.of(capstan, restartMany, each(seconds)))
	}

	return goals
}
