package crds

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/capstan-project/capstan/controllers/crds/trial"
)

// CheckOptions are the options of CheckChanges.
type CheckOptions struct {
	// Allow names CRDs that a user allows to break objects; see trial.AllowedCRDs.
	Allow []string
	// Again reads the objects even if the same changes were unsafe a moment ago.
	Again bool
}

// CheckChanges checks whether the changes of existing CRDs are safe for the existing objects. The report
// is nil if no existing CRD changes. An error says nothing about the changes; try again.
//
// A refusal is remembered for a while: all objects are read for it, and a provider that waits for a user is looked at
// again and again.
func (a *Applier) CheckChanges(ctx context.Context, p *Plan, options CheckOptions) (*trial.Report, error) {
	began := time.Now()
	key := p.verdictKey(options.Allow)

	if known, found := a.verdicts.Get(key); found && !options.Again {
		return known.(*trial.Report), nil
	}

	report, err := a.Check(ctx, p, options.Allow)
	if err != nil || report == nil || !report.Refused() {
		return report, err
	}

	a.verdicts.Add(key, report, verdictLifetime(time.Since(began)))

	// Objects may have been written in a version that is removed since the last migration.
	for _, c := range p.changes {
		a.migrations.remove(c.name)
	}

	return report, nil
}

// Check is CheckChanges without a memory: it always reads the objects, and changes nothing. One change after the other
// is in memory: the schemas of a CRD with 400 kB of text take several megabytes.
func (a *Applier) Check(ctx context.Context, p *Plan, allow []string) (*trial.Report, error) {
	if _, updated := p.Changes(); len(updated) == 0 {
		return nil, nil
	}

	var all []trial.Finding

	for _, c := range p.changes {
		findings, err := a.try(ctx, p.request.Label, c)
		if err != nil {
			return nil, err
		}

		all = append(all, findings...)
	}

	return trial.NewReport(all, allow), nil
}

// Bounds of how long a verdict is trusted.
const (
	minVerdictLifetime = 15 * time.Second
	maxVerdictLifetime = 10 * time.Minute
	// verdictShare is how much longer than the check its verdict is trusted, so that checks take at most a
	// twentieth of the time.
	verdictShare = 20
)

// verdictLifetime returns how long the verdict of a check is trusted, by the time that the check took.
func verdictLifetime(took time.Duration) time.Duration {
	return min(max(verdictShare*took, minVerdictLifetime), maxVerdictLifetime)
}

// verdictKey identifies what the result of a check depends on besides objects: the changes and the CRDs
// that they change.
func (p *Plan) verdictKey(allow []string) string {
	parts := []string{p.request.Label, strings.Join(allow, ",")}

	for _, c := range p.changes {
		if c.live != nil {
			parts = append(parts, fmt.Sprint(c.name, c.digestWith(c.kept), c.live.UID, c.live.Generation,
				c.live.Status.StoredVersions))
		}
	}

	return strings.Join(parts, "\n")
}

// try returns what the change of a CRD by a provider would break: nothing if the CRD does not exist.
func (a *Applier) try(ctx context.Context, label string, c *change) ([]trial.Finding, error) {
	if c.live == nil {
		return nil, nil
	}

	live, err := a.getComplete(ctx, c.name)
	if err != nil || live == nil {
		return nil, err
	}

	desired, err := c.parse()
	if err != nil {
		return nil, err
	}

	desired.Spec.Versions = append(desired.Spec.Versions, pickVersions(live, c.kept)...)

	return trial.Run(ctx, trial.Change{Live: live, Desired: desired, Users: a.users(label, c.name)}, a.Objects)
}
