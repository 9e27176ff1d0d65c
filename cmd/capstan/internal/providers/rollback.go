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
	"github.com/capstan-project/capstan/controllers/release/state"
)

// rollbackOptions are the flags of `rollback`.
type rollbackOptions struct {
	*cli.Options

	cluster *cli.ClusterFlags
	wait    *cli.WaitFlags

	undo, keep, yes bool
}

// NewRollbackCommand returns `capstan rollback`.
func NewRollbackCommand(options *cli.Options) *cobra.Command {
	o := &rollbackOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "rollback PROVIDER [REVISION]",
		Short: "Roll back a provider to an earlier revision of its release",
		Long: `Return to REVISION, or to the latest earlier one that was healthy, and stay
there until --keep or --undo. CRDs are not rolled back. This sets
spec.release.rollbackTo of the resource.

"capstan history" lists the revisions, and "capstan diff PROVIDER --revision
REVISION" shows what would change.

With --keep, the installed version becomes spec.version; with --undo, what was
rolled back may be applied again. Both show what changes, and ask.`,
		Example: `  capstan rollback infrastructure-aws
  capstan rollback infrastructure-aws 3
  capstan rollback infrastructure-aws --keep
  capstan rollback infrastructure-aws --undo`,
		Args:              cli.Arguments(1, 2, "a provider and optionally a revision"),
		ValidArgsFunction: cli.CompleteRevision,
		RunE:              cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	o.wait = cli.AddWaitFlags(flags, "the provider is ready")
	flags.BoolVar(&o.keep, "keep", false, "Make the installed version the one that the resource asks for.")
	flags.BoolVar(&o.undo, "undo", false, "Stop holding the revision, and apply what the resource asks for.")
	flags.BoolVar(&o.yes, "yes", false, "Do not ask.")
	cmd.MarkFlagsMutuallyExclusive("keep", "undo")

	return cmd
}

func (o *rollbackOptions) run(ctx context.Context, args []string) error {
	ends := o.undo || o.keep
	if ends && len(args) > 1 {
		return errors.New("--keep and --undo take no revision: they end the rollback to one")
	}

	cluster, err := o.cluster.Connect()
	if err != nil {
		return err
	}

	p, err := cluster.Find(ctx, args[0])
	if err != nil {
		return err
	}

	var change map[string]any
	if ends {
		change, err = o.end(ctx, cluster, p)
	} else {
		change, err = o.begin(ctx, cluster, p, args[1:])
	}

	if err != nil {
		return err
	}

	if err := cluster.Patch(ctx, p, change); err != nil {
		return err
	}

	return cluster.WaitAll(ctx, o.Options, []v1alpha2.Provider{p}, o.wait, cli.Ready)
}

// begin returns the change of a resource that makes the operator return to a revision, and prints which.
func (o *rollbackOptions) begin(
	ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider, args []string,
) (map[string]any, error) {
	revision, err := selectRevision(ctx, cluster, p, args)
	if err != nil {
		return nil, err
	}

	o.Printf("%s: rolling back to revision %d, version %s", v1alpha2.FullName(p), revision.Number, revision.Version)

	change := map[string]any{"spec": map[string]any{"release": map[string]any{"rollbackTo": revision.Number}}}
	if release := p.GetSpec().Release; release != nil && ptr.Equal(release.RollbackTo, &revision.Number) {
		change["metadata"] = cli.TryAgain() // it may have failed
	}

	return change, nil
}

// end returns the change of a resource that ends a rollback, and asks whether to make it.
func (o *rollbackOptions) end(ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider) (map[string]any, error) {
	spec, v := map[string]any{}, view.NewProvider(p)
	wanted := cmp.Or(v.Chosen, v.Wanted, "the newest version")
	after := p.DeepCopyObject().(v1alpha2.Provider)

	if v.RollbackTo != nil {
		spec["release"] = map[string]any{"rollbackTo": nil}
		after.GetSpec().Release.RollbackTo = nil
	}

	switch {
	case o.undo && v.RollbackTo == nil:
		return nil, fmt.Errorf("%s is not held at a revision", v1alpha2.FullName(p))
	case o.undo:
		o.Printf("%s is held at revision %d, with %s. Without that, the operator applies what the resource asks for now: %s.",
			v1alpha2.FullName(p), *v.RollbackTo, v.Version, wanted)
	case v.Version == "":
		return nil, fmt.Errorf("nothing was changed: no version of %s is installed", v1alpha2.FullName(p))
	case v.RollbackTo == nil && wanted == v.Version:
		return nil, fmt.Errorf("nothing was changed: %s asks for %s already", v1alpha2.FullName(p), wanted)
	default:
		spec["version"], after.GetSpec().Version = v.Version, v.Version

		became := "becomes " + v.Version + " instead of " + cmp.Or(v.Wanted, wanted)
		if v.Wanted == v.Version {
			became = "stays " + v.Version + ", and the other settings are those of the resource"
		}

		o.Printf("%s: spec.version %s", v1alpha2.FullName(p), became)
	}

	change := map[string]any{"spec": spec}
	if o.yes {
		return change, nil
	}

	changes, err := o.changes(ctx, cluster, after)

	switch {
	case err != nil:
		o.Warnf("it is unknown what changes in the cluster: %s", err)
	case o.keep && changes.isEmpty():
		return change, nil
	default:
		o.Printf("%s", changes.summary())
	}

	if o.undo && wanted != v.Version {
		o.Printf("To stay with %s, answer no, and run `capstan rollback %s --keep`.", v.Version, v.Label)
	}

	return change, o.Confirm(ctx, "Apply "+after.GetSpec().Version+"?")
}

// changes returns what changes in the cluster if a resource becomes another one.
func (o *rollbackOptions) changes(ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider) (*difference, error) {
	resource := &cli.ResourceFlags{Cluster: o.cluster, Planner: &cli.PlannerFlags{}}

	return (&diffOptions{Options: o.Options, resource: resource}).difference(ctx, cluster, p)
}

// selectRevision returns the revision that an argument names. Without one it is the latest earlier
// revision that was healthy.
func selectRevision(
	ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider, args []string,
) (state.Revision, error) {
	observed, err := cluster.Views().Observe(ctx, p)
	if err != nil {
		return state.Revision{}, err
	}

	if len(args) == 0 {
		for i, r := range observed.Revisions {
			if i > 0 && r.Healthy {
				return r, nil
			}
		}

		return state.Revision{}, fmt.Errorf(
			"release %s has no earlier revision that was healthy; `capstan history %s` lists the revisions",
			observed.Release, v1alpha2.Label(p))
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
