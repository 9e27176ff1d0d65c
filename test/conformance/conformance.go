// Package conformance checks a release of a provider on a test bed, for the CI of the provider: it lints the
// release, installs it with the operator, upgrades it, audits what runs, and removes it. It must be used in a
// checkout of Capstan, from which the bed and the operator are built. No container is started: nodes are
// simulated, and the provider's manager runs only as a process, if its program is given.
package conformance

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/audit"
	"github.com/capstan-project/capstan/audit/live"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/controllers/usage"
)

// DefaultTimeout is how long each step may take, unless the options set another.
const DefaultTimeout = 2 * time.Minute

// Options are what to check.
type Options struct {
	// Release is the folder with the published files of a version. If it is not named <label>/<version>, Identity is
	// needed.
	Release  string
	Identity Identity
	// Previous is the folder of an earlier version of the same provider, from which to upgrade. It is optional, and its
	// name must be that version.
	Previous string
	// Variables are the values of the provider's variables.
	Variables map[string]string
	// Others are folders of releases of other providers for Run, as for Start.
	Others []string
	// Manager is the provider's manager. Without it, what managers do is not checked.
	Manager *Manager
	// Timeout is how long each step may take; zero means DefaultTimeout.
	Timeout time.Duration
	// Baseline are findings that do not count, in addition to those that the release accepts.
	Baseline []lint.Acceptance
	// FailOn is the least level of the findings for which Run fails; empty means lint.Error.
	FailOn lint.Level
}

// Run starts a bed, checks a release on it, and fails the test for each finding of the level FailOn or a worse one.
func Run(t *testing.T, o Options) {
	t.Helper()

	e, err := Start(t.Context(), o.Others...)
	if err != nil {
		t.Fatal(err)
	}

	defer func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	}()

	findings, err := e.Check(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range findings {
		if lint.Fail([]lint.Finding{f}, cmp.Or(o.FailOn, lint.Error)) {
			t.Errorf("%s: %s %s %s. %s %s", f.Rule, f.Kind, f.Object, f.Message, f.Why, f.Remedy)
		} else {
			t.Logf("%s: %s %s %s %s", f.Rule, f.Kind, f.Object, f.Message, f.Accepted)
		}
	}
}

// check is the check of one release.
type check struct {
	*Environment

	options           Options
	release, previous *release
	timeout           time.Duration
	findings          []lint.Finding

	// What the check of the manager needs: its ServiceAccount, and the objects that it reconciles.
	account  string
	topology *topology
}

// Check checks a release. An error means that the check failed, not the release.
func (e *Environment) Check(ctx context.Context, o Options) ([]lint.Finding, error) {
	c := &check{Environment: e, options: o, timeout: o.Timeout}
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}

	var err error
	if c.release, err = load(ctx, o.Release, o.Identity, o.Variables); err != nil {
		return nil, err
	}

	if o.Previous != "" {
		same := Identity{Type: o.Identity.Type, Name: o.Identity.Name}
		if c.previous, err = load(ctx, o.Previous, same, o.Variables); err != nil {
			return nil, err
		}
	}

	c.findings = c.release.files.Lint(c.release.Bundle, nil)

	// Without a chart there is nothing to install.
	if c.buildChart() {
		err = c.run(ctx)
	}

	lint.Accept(c.findings, append(lint.AcceptedBy(c.release.Bundle.Metadata), o.Baseline...))

	return c.findings, err
}

// report adds a finding about the provider.
func (c *check) report(rule lint.Rule, format string, args ...any) {
	f := rule.Finding(fmt.Sprintf(format, args...))
	f.Kind, f.Object = string(c.release.Type), c.release.Bundle.Provider.Name
	c.findings = append(c.findings, f)
}

// buildChart reports whether the chart can be built.
func (c *check) buildChart() bool {
	_, err := chartgen.Build(c.release.Bundle)
	if err != nil {
		c.report(chartRule, "has no chart: %s", err)
	}

	return err == nil
}

// run installs, upgrades, audits and removes the release.
func (c *check) run(ctx context.Context) error {
	if c.options.Manager != nil {
		if err := c.prepareManager(); err != nil {
			return err
		}
	}

	first := c.release
	if c.previous != nil {
		first = c.previous
	}

	p, err := c.install(ctx, first)
	if err != nil {
		return err
	}

	problem, err := c.waitReady(ctx, p, first.Bundle.Version)
	if err != nil {
		return err
	}

	if problem != "" {
		c.report(installRule, "%s is not installed: %s", first.Bundle.Version, problem)
	} else if err := c.checkInstalled(ctx, p); err != nil {
		return err
	}

	return c.remove(ctx, p)
}

// checkInstalled upgrades what is installed if it is the previous version, and checks the result.
func (c *check) checkInstalled(ctx context.Context, p v1alpha2.Provider) error {
	if c.previous != nil {
		problem, err := c.upgrade(ctx, p)
		if err != nil {
			return err
		}

		if problem != "" {
			c.report(upgradeRule, "is not upgraded from %s to %s: %s",
				c.previous.Bundle.Version, c.release.Bundle.Version, problem)

			return nil
		}
	}

	components, err := bundle.ParseComponents(c.release.Bundle.Components)
	if err != nil {
		return err
	}

	c.checkAvailability(components)

	if err := c.injectCA(ctx, components); err != nil {
		return err
	}

	if err := c.waitMigrated(ctx, components); err != nil {
		return err
	}

	if err := c.checkPermissions(ctx, components, p.GetNamespace()); err != nil {
		return err
	}

	if err := c.audit(ctx, p); err != nil || c.options.Manager == nil {
		return err
	}

	return c.checkManager(ctx, p)
}

// audit audits what is installed.
func (c *check) audit(ctx context.Context, p v1alpha2.Provider) error {
	const objects = 1000

	snapshot, err := live.Read(ctx, c.bed.Config(), usage.TypesByLabel([]v1alpha2.Provider{p}),
		live.Limits{Objects: objects, Timeout: c.timeout})
	if err != nil {
		return err
	}

	c.findings = append(c.findings, audit.Check(snapshot, audit.Options{
		Providers: []string{v1alpha2.Label(p)}, DeletionTimeout: audit.DefaultDeletionTimeout,
	})...)

	return nil
}
