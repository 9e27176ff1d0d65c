package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// rollbackOptions are the flags of `rollback`.
type rollbackOptions struct {
	*cli.Options

	cluster *cli.ClusterFlags
	wait    *cli.WaitFlags

	undo, yes bool
}

// NewRollbackCommand returns `capstan rollback`.
func NewRollbackCommand(options *cli.Options) *cobra.Command {
	o := &rollbackOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "rollback PROVIDER [REVISION]",
		Short: "Roll back a provider to an earlier revision of its release",
		Long: `Return to REVISION, or to the latest earlier one that was healthy, and stay
there until --undo. CRDs are not rolled back. This sets spec.release.rollbackTo
of the resource.

"capstan history" lists the revisions, and "capstan diff PROVIDER --revision
REVISION" shows what would change.

With --undo, the operator applies what the rest of the resource asks for, which
may be what was rolled back: the command shows it, and asks.`,
		Example: `  capstan rollback infrastructure-aws
  capstan rollback infrastructure-aws 3
  capstan rollback infrastructure-aws --undo`,
		Args:              cli.Arguments(1, 2, "a provider and optionally a revision"),
		ValidArgsFunction: cli.CompleteProvider,
		RunE:              cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	o.wait = cli.AddWaitFlags(flags, "the provider is ready")
	flags.BoolVar(&o.undo, "undo", false, "Stop holding the revision, and apply what the resource asks for.")
	flags.BoolVar(&o.yes, "yes", false, "Do not ask before --undo.")

	return cmd
}

func (o *rollbackOptions) run(ctx context.Context, args []string) error {
	if o.undo && len(args) > 1 {
		return errors.New("--undo takes no revision: it installs what the rest of the spec asks for")
	}

	cluster, err := o.cluster.Connect()
	if err != nil {
		return err
	}

	p, err := cluster.Find(ctx, args[0])
	if err != nil {
		return err
	}

	rollbackTo, err := o.target(ctx, cluster, p, args[1:])
	if err != nil {
		return err
	}

	change := map[string]any{"spec": map[string]any{"release": map[string]any{"rollbackTo": rollbackTo}}}
	if release := p.GetSpec().Release; rollbackTo != nil && release != nil && ptr.Equal(release.RollbackTo, rollbackTo) {
		change["metadata"] = cli.TryAgain() // it may have failed
	}

	if err := cluster.Patch(ctx, p, change); err != nil {
		return err
	}

	return cluster.WaitAll(ctx, o.Options, []v1alpha2.Provider{p}, o.wait, cli.Ready)
}

// target returns the value of spec.release.rollbackTo, of which nil removes it, and prints what that means.
func (o *rollbackOptions) target(
	ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider, args []string,
) (*int, error) {
	if !o.undo {
		revision, err := selectRevision(ctx, cluster, p, args)
		if err != nil {
			return nil, err
		}

		o.Printf("%s: rolling back to revision %d, version %s", v1alpha2.FullName(p), revision.Number, revision.Version)

		return new(revision.Number), nil
	}

	spec := p.GetSpec()
	if spec.Release == nil || spec.Release.RollbackTo == nil {
		return nil, fmt.Errorf("%s is not held at a revision", v1alpha2.FullName(p))
	}

	v := view.NewProvider(p)
	wanted := cmp.Or(v.Chosen, v.Wanted, "the newest version")
	o.Printf("%s is held at revision %d, with %s. Without that, the operator applies what the resource asks for now: %s.",
		v1alpha2.FullName(p), *v.RollbackTo, v.Version, wanted)

	if o.yes {
		return nil, nil
	}

	if wanted != v.Version {
		o.Hintf("To keep %s, answer no, and run `capstan upgrade apply %s:%[1]s` first.",
			v.Version, v.Label)
	}

	return nil, o.Confirm(ctx, "Apply "+wanted+"?")
}

// selectRevision returns the revision that an argument names. Without one it is the latest earlier
// revision that was healthy.
func selectRevision(
	ctx context.Context,
	cluster *cli.Cluster,
	p v1alpha2.Provider,
	args []string,
) (state.Revision, error) {
	observed, err := cluster.Releases.Observe(ctx, plan.ReleaseKey(p))
	if err != nil {
		return state.Revision{}, err
	}

	observed = observed.Show(p.GetStatus())

	if len(args) == 0 {
		return lastHealthy(observed, v1alpha2.Label(p))
	}

	number, err := strconv.Atoi(args[0])
	if err != nil {
		return state.Revision{}, fmt.Errorf(
			"revision %q is not a number; `capstan history %s` lists the revisions",
			args[0],
			v1alpha2.Label(p),
		)
	}

	return view.FindRevision(p, observed, number)
}

// lastHealthy returns the latest revision before the current one that was healthy.
func lastHealthy(observed state.History, label string) (state.Revision, error) {
	for i, r := range observed.Revisions {
		if i > 0 && r.Healthy {
			return r, nil
		}
	}

	return state.Revision{}, fmt.Errorf(
		"release %s has no earlier revision that was healthy; `capstan history %s` lists the revisions",
		observed.Release,
		label,
	)
}
