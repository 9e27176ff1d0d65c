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

// suspension is what a command does to providers: it sets a field of their spec.
type suspension struct {
	name, short, long string

	field string // suspend or paused
	value bool
	// done and already are what is printed.
	done, already string
	// until is met when the operator has acted on the change, as untilText says.
	until     cli.Condition
	untilText string
}

const (
	suspendField = "suspend"
	pausedField  = "paused"
)

var (
	suspend = suspension{
		name:  "suspend",
		short: "Stop the operator from changing providers",
		long: `Until "capstan resume", the operator installs, upgrades, corrects and removes
nothing. The providers keep running, and their status is still updated. This
sets spec.suspend of their resources.`,
		field: suspendField, value: true, done: "suspended", already: "already suspended",
		until: cli.Observed, untilText: "the operator has stopped reconciling the providers",
	}
	resume = suspension{
		name:  "resume",
		short: "Let the operator change suspended providers again",
		long: `This unsets spec.suspend of their resources. Paused providers stay paused, see
"capstan unpause".`,
		field: suspendField, done: "resumed", already: "not suspended",
		until: resumed, untilText: "the providers are ready",
	}
	pause = suspension{
		name:  "pause",
		short: "Stop providers by scaling their Deployments to zero",
		long: `The providers stay installed, and can be upgraded. Until "capstan unpause",
nothing reconciles objects of their kinds, and their webhooks do not answer, so
do not change such objects. This sets spec.paused of their resources.

To keep providers running, and only stop the operator from changing them, use
"capstan suspend".`,
		field: pausedField, value: true, done: "paused", already: "already paused",
		until: paused, untilText: "the providers are scaled to zero",
	}
	unpause = suspension{
		name:  "unpause",
		short: "Start paused providers",
		long: `Their Deployments get back the replicas that they had. This unsets spec.paused
of their resources. Suspended providers stay suspended, see "capstan resume".`,
		field: pausedField, done: "unpaused", already: "not paused",
		until: resumed, untilText: "the providers are ready",
	}
)

// NewSuspensionCommands returns `capstan suspend`, `resume`, `pause` and `unpause`.
func NewSuspensionCommands(o *cli.Options) []*cobra.Command {
	return []*cobra.Command{suspend.command(o), resume.command(o), pause.command(o), unpause.command(o)}
}

func (c suspension) command(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:               c.name + " {PROVIDER... | --all}",
		Short:             c.short,
		Long:              c.long,
		Example:           fmt.Sprintf("  capstan %[1]s infrastructure-aws\n  capstan %[1]s --all", c.name),
		ValidArgsFunction: cli.CompleteProviders,
	}
	flags := cli.AddClusterFlags(cmd.Flags())
	wait := cli.AddWaitFlags(cmd.Flags(), c.untilText)
	selection := cli.AddSelectionFlags(cmd)

	cmd.RunE = cli.Run(func(ctx context.Context, args []string) error {
		cluster, found, err := selection.Find(ctx, o, flags, args)
		if err != nil {
			return err
		}

		if err := c.change(ctx, o, cluster, found); err != nil {
			return err
		}

		return cluster.WaitAll(ctx, o, found, wait, c.until)
	})

	return cmd
}

func (c suspension) change(ctx context.Context, o *cli.Options, cluster *cli.Cluster, found []v1alpha2.Provider) error {
	// Nothing is changed if one of the providers cannot be.
	for _, p := range found {
		if err := c.refuse(p); err != nil {
			return err
		}
	}

	for _, p := range found {
		fields, message := c.apply(p.GetSpec())
		if len(fields) > 0 {
			if err := cluster.Patch(ctx, p, map[string]any{"spec": fields}); err != nil {
				return err
			}
		}

		o.Printf("%s: %s", v1alpha2.FullName(p), message)
	}

	return nil
}

// refuse returns an error if the operator would not act on the change.
func (c suspension) refuse(p v1alpha2.Provider) error {
	switch {
	case c.field != pausedField:
		return nil
	case c.value && !p.GetDeletionTimestamp().IsZero():
		return fmt.Errorf("%s is being deleted: %s", v1alpha2.FullName(p), view.VerdictOf(p))
	case p.GetSpec().Suspend:
		return fmt.Errorf("%s is suspended, so the operator does not scale it; run `capstan resume %s` first",
			v1alpha2.FullName(p), v1alpha2.Label(p))
	}

	return nil
}

// apply returns the fields of the spec to set, which are none if nothing changes, and what to tell the user.
func (c suspension) apply(spec *v1alpha2.ProviderSpec) (map[string]any, string) {
	current := spec.Suspend
	if c.field == pausedField {
		current = spec.Paused
	}

	if current == c.value {
		return nil, c.already
	}

	message := c.done
	if c.field == suspendField && !c.value && spec.Paused {
		message += ", and stays paused"
	}

	return map[string]any{c.field: c.value}, message
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
