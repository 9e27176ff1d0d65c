package providers

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// suspendOptions are the flags of a command that suspends, resumes, pauses or unpauses providers, and what makes it
// differ from the others.
type suspendOptions struct {
	*cli.Options

	cluster   *cli.ClusterFlags
	wait      *cli.WaitFlags
	selection *cli.SelectionFlags

	// change is what the command sets in the spec of a provider.
	change suspension
	// until is met when the operator has acted on the change.
	until cli.Condition
}

// NewSuspendCommand returns `capstan suspend`.
func NewSuspendCommand(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "suspend {PROVIDER... | --all}",
		Short: "Suspend the reconciliation of providers",
		Long: `Suspend the reconciliation of providers: the operator installs, upgrades, corrects and removes
nothing until they are resumed. Their status is still updated, and they keep running. This sets
spec.suspend of their resources.`,
		Example: `  capstan suspend infrastructure-aws`,
	}

	return newSuspensionCommand(o, cmd, suspend, cli.Observed, "the operator has stopped reconciling the providers")
}

// NewPauseCommand returns `capstan pause`.
func NewPauseCommand(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause {PROVIDER... | --all}",
		Short: "Stop providers by scaling their Deployments to zero",
		Long: `Stop providers by scaling their Deployments to zero, until capstan unpause. They stay installed and
can be upgraded. Nothing reconciles the objects of their kinds meanwhile, and their webhooks do not
answer, so such objects may not be changed. This sets spec.paused of their resources.

To keep providers running, and only stop the operator from changing them, use capstan suspend.`,
		Example: `  capstan pause infrastructure-aws
  capstan pause --all`,
	}

	return newSuspensionCommand(o, cmd, pause, paused, "the providers are scaled to zero")
}

// NewResumeCommand returns `capstan resume`.
func NewResumeCommand(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume {PROVIDER... | --all}",
		Short: "Resume the reconciliation of suspended providers",
		Long: `Resume the reconciliation of suspended providers. This unsets spec.suspend of their resources. Paused
providers stay paused, see capstan unpause.`,
		Example: `  capstan resume infrastructure-aws
  capstan resume --all`,
	}

	return newSuspensionCommand(o, cmd, resume, resumed, "the providers are ready")
}

// NewUnpauseCommand returns `capstan unpause`.
func NewUnpauseCommand(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unpause {PROVIDER... | --all}",
		Short: "Start paused providers",
		Long: `Start paused providers: their Deployments get the replicas back that they had. This unsets spec.paused
of their resources. Suspended providers stay suspended, see capstan resume.`,
		Example: `  capstan unpause infrastructure-aws
  capstan unpause --all`,
	}

	return newSuspensionCommand(o, cmd, unpause, resumed, "the providers are ready")
}

func newSuspensionCommand(
	o *cli.Options, cmd *cobra.Command, c suspension, until cli.Condition, untilText string,
) *cobra.Command {
	opts := &suspendOptions{Options: o, change: c, until: until}
	opts.cluster = cli.AddClusterFlags(cmd.Flags())
	opts.wait = cli.AddWaitFlags(cmd.Flags(), untilText)
	opts.selection = cli.AddSelectionFlags(cmd)
	cmd.ValidArgsFunction = cli.CompleteProviders
	cmd.RunE = cli.Run(opts.run)

	return cmd
}

func (o *suspendOptions) run(ctx context.Context, args []string) error {
	cluster, found, err := o.selection.Find(ctx, o.Options, o.cluster, args)
	if err != nil {
		return err
	}

	// Nothing is changed if one of the providers cannot be.
	for _, p := range found {
		if err := o.change.refuse(p); err != nil {
			return err
		}
	}

	for _, p := range found {
		fields, message := o.change.apply(p.GetSpec())
		if len(fields) > 0 {
			if err := cluster.Patch(ctx, p, map[string]any{"spec": fields}); err != nil {
				return err
			}
		}

		o.Printf("%s: %s", v1alpha2.FullName(p), message)
	}

	return cluster.WaitAll(ctx, o.Options, found, o.wait, o.until)
}

// suspension is what a command does to providers.
type suspension string

const (
	suspend suspension = "suspend"
	resume  suspension = "resume"
	pause   suspension = "pause"
	unpause suspension = "unpause"
)

// refuse returns an error if the operator would not act on the change.
func (c suspension) refuse(p v1alpha2.Provider) error {
	switch {
	case c == pause && !p.GetDeletionTimestamp().IsZero():
		return fmt.Errorf("%s is being deleted: %s", v1alpha2.FullName(p), view.VerdictOf(p))
	case (c == pause || c == unpause) && p.GetSpec().Suspend:
		return fmt.Errorf("%s is suspended, so the operator does not scale it; run `capstan resume %s` first",
			v1alpha2.FullName(p), v1alpha2.Label(p))
	}

	return nil
}

// apply returns the fields of the spec to set, which are none if nothing changes, and what to tell the user.
func (c suspension) apply(spec *v1alpha2.ProviderSpec) (map[string]any, string) {
	switch {
	case c == suspend && spec.Suspend:
		return nil, "already suspended"
	case c == suspend:
		return map[string]any{"suspend": true}, "suspended"
	case c == resume && !spec.Suspend:
		return nil, "not suspended"
	case c == resume && spec.Paused:
		return map[string]any{"suspend": false}, "resumed, and stays paused"
	case c == resume:
		return map[string]any{"suspend": false}, "resumed"
	case c == pause && spec.Paused:
		return nil, "already paused"
	case c == pause:
		return map[string]any{"paused": true}, "paused"
	case !spec.Paused:
		return nil, "not paused"
	}

	return map[string]any{"paused": false}, "unpaused"
}

// paused is met when the provider is scaled to zero. What else the operator cannot do, such as an upgrade, does not
// matter.
func paused(p v1alpha2.Provider) (bool, error) {
	ready, err := cli.Ready(p)
	if p == nil || !meta.IsStatusConditionTrue(p.GetConditions(), v1alpha2.PausedCondition) {
		return false, err
	}

	return ready || err != nil, nil
}

// resumed is met when the provider is ready. One that is being deleted does not become ready: its deletion continues.
func resumed(p v1alpha2.Provider) (bool, error) {
	if p == nil || !p.GetDeletionTimestamp().IsZero() {
		return true, nil
	}

	return cli.Ready(p)
}
