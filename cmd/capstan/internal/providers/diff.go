package providers

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// diffOptions are the flags of `diff`.
type diffOptions struct {
	*cli.Options

	resource *cli.ResourceFlags
	output   *cli.OutputFlags

	revision, baseline int
	exitCode           bool
}

// NewDiffCommand returns `capstan diff`.
func NewDiffCommand(options *cli.Options) *cobra.Command {
	o := &diffOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "diff {PROVIDER | --filename FILE}",
		Short: "Show what applying a provider's resource would change",
		Long: `The resource is the one in the cluster, the same with another --version, or the
one in a file. With --revision, the command shows what a rollback would change,
and with --baseline as well, how two revisions differ.

Values of Secrets are not shown, nor those of variables from Secrets. CRDs that
would change are only listed, with what would be unsafe for existing objects.
If you may not read Secrets, what the resource asks for is compared instead of
what is installed, and a warning says so.

The exit code is 1 for errors, and with --exit-code 2 if there are changes.`,
		Example: `  capstan diff infrastructure-aws
  capstan diff infrastructure-aws --version v2.11.1
  capstan diff infrastructure-aws --revision 3
  capstan diff infrastructure-aws --baseline 2 --revision 3
  capstan diff -f aws.yaml --exit-code`,
		ValidArgsFunction: cli.CompleteProvider,
		RunE:              cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.resource = cli.AddResourceFlags(cmd)
	o.output = cli.AddOutputFlags(flags)
	flags.IntVar(&o.revision, "revision", 0, "Revision of the release to compare.")
	flags.IntVar(&o.baseline, "baseline", 0, "Revision to compare with --revision, or with the current one.")
	flags.BoolVar(&o.exitCode, "exit-code", false, "Exit with code 2 if there are changes.")

	for _, installed := range []string{"revision", "baseline"} {
		cmd.MarkFlagsMutuallyExclusive(installed, "version")
		cmd.MarkFlagsMutuallyExclusive(installed, "filename")
	}

	return cmd
}

func (o *diffOptions) run(ctx context.Context, args []string) error {
	printer, cluster, p, err := o.resource.Open(ctx, o.Options, o.output, args)
	if err != nil {
		return err
	}

	d, err := o.difference(ctx, cluster, p)
	if err != nil {
		return err
	}

	if err := d.print(printer); err != nil {
		return err
	}

	if o.exitCode && !d.isEmpty() {
		return &cli.ExitError{Code: cli.ExitFindings}
	}

	return nil
}

// difference returns what the flags ask for.
func (o *diffOptions) difference(ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider) (*difference, error) {
	if o.baseline == 0 {
		return o.compare(ctx, cluster, p)
	}

	c, err := cluster.Views().Compare(ctx, p, view.Sides{From: o.baseline, To: o.revision})
	if err != nil {
		return nil, err
	}

	return o.describe(p, &plan.Preview{Plan: plan.Plan{Version: c.To}}, c, nil), nil
}

// compare compares the current revision of the release with what would be installed.
func (o *diffOptions) compare(ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider) (*difference, error) {
	planner, err := o.resource.Planner.Planner(ctx, o.Options, cluster)
	if err != nil {
		return nil, err
	}

	current, observed, err := cluster.Installed(ctx, p)
	if apierrors.IsForbidden(err) && o.revision == 0 && p.GetSpec().KubeConfig == nil {
		return o.compareResources(ctx, cluster, planner, p)
	}

	if err != nil {
		return nil, err
	}

	plan, findings, err := o.plan(ctx, cluster, planner, p, observed)
	if err != nil {
		return nil, err
	}

	c, err := view.CompareWithPlan(p, observed, current, plan.Rendered)
	if err != nil {
		return nil, err
	}

	return o.describe(p, plan, c, findings), nil
}

// compareResources is compare for users who may not read Helm's records: instead of what is installed, it takes what
// the resource in the cluster asks for, with the installed version. A warning says so.
func (o *diffOptions) compareResources(
	ctx context.Context, cluster *cli.Cluster, planner *cli.Planner, p v1alpha2.Provider,
) (*difference, error) {
	preview, err := planner.PlanWithoutSecrets(ctx, p)
	if err != nil {
		return nil, err
	}

	current := p.ProviderType().New()
	if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(p), current); client.IgnoreNotFound(err) != nil {
		return nil, err
	}

	installed := &release.Record{}

	if version := current.GetStatus().InstalledVersion; version != nil {
		if v := view.VerdictOf(current); v.State != view.Ready || v.Cause != "" {
			o.Warnf("not all that the resource asks for is installed: %s", v)
		}

		current.GetSpec().Version = *version

		before, err := planner.PlanWithoutSecrets(ctx, current)
		if err != nil {
			return nil, fmt.Errorf("the installed version: %w", err)
		}

		installed = before.Rendered
	}

	c, err := view.CompareWithPlan(p, state.History{Release: plan.ReleaseKey(p)}, installed, preview.Rendered)
	if err != nil {
		return nil, err
	}

	report, err := planner.CheckCRDs(ctx, p, preview)

	unknown := "variables in Secrets"

	switch {
	case preview.CRDs == nil:
		unknown += " and changes of CRDs"
	case apierrors.IsForbidden(err):
		unknown += " and what changes of CRDs would break"
	case err != nil:
		o.Warnf("the changes of CRDs were not checked: %s", err)
	}

	o.Warnf("what the resource asks for is compared, not what is installed, because you may not list secrets in "+
		"namespace %s; unknown are %s", p.GetNamespace(), unknown)

	return o.describe(p, preview, c, texts(report)), nil
}

// describe returns the difference that a comparison with a plan has found, and prints warnings.
func (o *diffOptions) describe(
	p v1alpha2.Provider, plan *plan.Preview, c view.Comparison, findings []string,
) *difference {
	for _, w := range plan.Warnings.All() {
		o.Warnf("%s", w)
	}

	if c.Withheld != "" {
		o.Warnf("%s", c.Withheld)
	}

	var skipped []string
	if plan.Chart != nil { // a revision has none
		skipped = offers.SkippedMinors(c.From, plan.Version, plan.Chart.Minors())
	}

	return &difference{
		Provider:      v1alpha2.Label(p),
		From:          c.From,
		To:            plan.Version,
		SkippedMinors: skipped,
		Objects:       c.Changes,
		NewCRDs:       plan.NewCRDs,
		ChangedCRDs:   plan.ChangedCRDs,
		DroppedCRDs:   plan.DroppedCRDs,
		Findings:      findings,
	}
}

// plan returns what would be installed: the revision that a flag or the resource selects, or what
// the rest of the resource asks for. It also returns what is wrong with the changes of CRDs.
func (o *diffOptions) plan(
	ctx context.Context, cluster *cli.Cluster, planner *cli.Planner, p v1alpha2.Provider, observed state.History,
) (*plan.Preview, []string, error) {
	number := o.revision

	spec := p.GetSpec().Release
	if number == 0 && spec != nil && spec.RollbackTo != nil {
		number = *spec.RollbackTo
		o.Warnf("spec.release.rollbackTo is %d, so nothing but this revision is installed", number)
	}

	if number != 0 {
		revision, err := view.FindRevision(p, observed, number)
		if err != nil {
			return nil, nil, err
		}

		return o.planRollback(ctx, cluster, planner, p, revision)
	}

	preview, err := planner.Plan(ctx, p)
	if err != nil {
		return nil, nil, err
	}

	report, err := planner.CheckCRDs(ctx, p, preview)
	if err != nil {
		o.Warnf("the changes of CRDs were not checked: %s", err)
	}

	return preview, texts(report), nil
}

// planRollback returns an earlier revision, and what would be left of CRDs that it does not include. A rollback does
// not change CRDs.
func (o *diffOptions) planRollback(
	ctx context.Context, cluster *cli.Cluster, planner *cli.Planner, p v1alpha2.Provider, revision state.Revision,
) (*plan.Preview, []string, error) {
	record, err := cluster.Releases.Read(ctx, plan.ReleaseKey(p), revision)
	if err != nil {
		return nil, nil, err
	}

	preview := &plan.Preview{Plan: plan.Plan{Version: record.AppVersion}, Rendered: record}

	dropped, report, err := planner.DroppedByRevision(ctx, p, revision.ChartDigest)
	if err != nil {
		o.Warnf("it is unknown which CRDs %s does not include: %s", record.AppVersion, err)
	}

	preview.DroppedCRDs = dropped

	return preview, texts(report), nil
}
