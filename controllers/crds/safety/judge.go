package safety

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// judge returns the report: all findings with their final level.
func (o *outcome) judge(clients map[schema.GroupVersionResource][]string) *Report {
	report := &Report{Findings: slices.Clone(o.findings), Trials: o.trials}

	for _, r := range o.removed {
		users := clients[versions.Resource(o.live, r.Version)]
		report.Findings = append(report.Findings, judgeRemovedVersion(r.Finding, o.trial(o.preferredVersion()), users))
	}

	for _, c := range o.changes {
		for _, r := range c.results {
			report.Findings = append(report.Findings, judgeFinding(r.Finding, o.trial(c.from.Name)))
		}
	}

	report.sort()

	return report
}

// trial returns the trial of a version, or nil if there was none.
func (o *outcome) trial(version string) *Trial {
	i := slices.IndexFunc(o.trials, func(t Trial) bool { return t.Version == version })
	if i < 0 {
		return nil
	}

	return &o.trials[i]
}

// judgeRemovedVersion sets the level of a finding about a version that is no longer served: known
// clients are reason enough to keep it.
func judgeRemovedVersion(f Finding, trial *Trial, clients []string) Finding {
	if len(clients) == 0 {
		return judgeFinding(f, trial)
	}

	f.Level = Error
	f.Message += ", but is used by " + quoted(strings.Join(clients, ", "))

	return f
}

// judgeFinding sets the level of a finding: what breaks an existing object is an error, and what
// turned out to break none is a warning. If objects could not be read, the finding says so. If only
// the status of objects breaks, but the objects can still be updated, that is a warning, too, because
// their controller writes the status again.
func judgeFinding(f Finding, trial *Trial) Finding {
	traits := traitsOf(f.Rule)

	switch {
	case traits.ignoresObjects || f.Level == Info:
	case f.Affected > 0 && (f.UpdatesRejected || !inStatus(f.Path)):
		f.Level = Error
	case f.Affected > 0:
		f.Level = Warning
	case trial != nil && trial.Failed != "":
		f.Message += "; whether it affects objects is not known, because the objects could not be read in this version: " +
			quoted(trial.Failed)
		f.Remedy = remedyWebhook
	case trial.complete() && concernsObjects(traits.remedy):
		f.Level = Warning
		f.Message += "; no object is affected"
		f.Remedy = ""
	}

	return f
}
