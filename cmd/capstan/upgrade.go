package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

func upgradeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "upgrade", Short: "See which upgrades there are, and make them"}
	cmd.AddCommand(upgradePlanCommand(), upgradeApplyCommand())

	return cmd
}

// upgradePlan are the flags of `upgrade plan`.
type upgradePlan struct {
	management *management
	screen     *screen
}

func upgradePlanCommand() *cobra.Command {
	o := &upgradePlan{}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show which upgrades there are",
		Long: `Show which upgrades there are: for each contract of Cluster API, every provider's newest version that fits it, in the order in which
to upgrade. The versions come from the providers' sources. Pre-releases are left out.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(o.screen.open(cmd.OutOrStdout()), o.management.connect()); err != nil {
				return err
			}

			return o.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	o.management = managementFlags(cmd.Flags())
	o.screen = screenFlags(cmd.Flags(), "json", "yaml")

	return cmd
}

func (o *upgradePlan) run(ctx context.Context, warnings io.Writer) error {
	installed, err := o.management.installed(ctx, warnings)
	if err != nil {
		return err
	}

	plans := makePlans(installed)
	if done, err := o.screen.data(plans); done {
		return err
	}

	if len(plans) == 0 {
		fmt.Fprintln(o.screen, "There are no providers whose versions are known.")
	}

	for i, plan := range plans {
		if i > 0 {
			fmt.Fprintln(o.screen)
		}

		plan.print(o.screen)
	}

	return nil
}

// installed finds what is installed and what there is instead. A source that does not answer is
// warned of, and the provider stands there without offers.
func (m *management) installed(ctx context.Context, warnings io.Writer) ([]installed, error) {
	providers, err := m.providers(ctx)
	if err != nil {
		return nil, err
	}

	previewer, err := m.preview()
	if err != nil {
		return nil, err
	}

	var all []installed

	for _, p := range providers {
		status := p.GetStatus()
		if status.InstalledVersion == nil || status.Contract == nil {
			fmt.Fprintf(warnings, "Warning: %s is not installed yet, so it is left out: %s\n", nameOf(p), readiness(p))
			continue
		}

		offers, err := previewer.Versions(ctx, p)
		if err != nil {
			fmt.Fprintf(warnings, "Warning: it is not known what versions of %s there are: %s\n", v1alpha2.Label(p), err)
		}

		all = append(
			all,
			installed{Label: v1alpha2.Label(p), Version: *status.InstalledVersion, Contract: *status.Contract, offers: offers},
		)
	}

	return all, nil
}

// upgradeApply are the flags of `upgrade apply`.
type upgradeApply struct {
	management *management
	contract   string
	wait       bool
	timeout    time.Duration
}

func upgradeApplyCommand() *cobra.Command {
	o := &upgradeApply{}

	const usage = "apply PROVIDER:VERSION... | --contract CONTRACT"

	cmd := &cobra.Command{
		Use:   usage,
		Short: "Upgrade providers",
		Long: `Upgrade providers to the versions that are named, or all to the newest that fit a --contract, as upgrade plan shows them. It sets
spec.version of their resources, one after the other in the order of the plan, and waits for each to be ready before the next.`,
		Example: `  capstan upgrade apply --contract v1beta2
  capstan upgrade apply cluster-api:v1.13.5 infrastructure-aws:v2.11.1`,
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) > 0) == (o.contract != "") {
				return errors.New("give either providers with versions or a contract: capstan upgrade " + usage)
			}

			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.management.connect(); err != nil {
				return err
			}

			return o.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.management = managementFlags(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(
		&o.contract,
		"contract",
		"",
		"upgrade all providers to their newest versions that fit this contract, e.g. v1beta2",
	)
	flags.BoolVar(&o.wait, "wait", true, "wait for each provider to be ready before the next")
	flags.DurationVar(&o.timeout, "timeout", defaultTimeout, "how long to wait for each")

	return cmd
}

func (o *upgradeApply) run(ctx context.Context, args []string, out, warnings io.Writer) error {
	versions, err := o.versions(ctx, args, warnings)
	if err != nil {
		return err
	}

	providers, err := o.management.providers(ctx)
	if err != nil {
		return err
	}

	for _, p := range providers {
		to, wanted := versions[v1alpha2.Label(p)]
		if !wanted {
			continue
		}

		if err := o.management.merge(ctx, p, map[string]any{"spec": map[string]any{"version": to}}); err != nil {
			return err
		}

		fmt.Fprintf(out, "%s is to have version %s\n", nameOf(p), to)

		if o.wait {
			if err := o.management.waitReady(ctx, p, o.timeout, out); err != nil {
				return err
			}
		}
	}

	return nil
}

// versions are those to upgrade to, by the providers' labels.
func (o *upgradeApply) versions(ctx context.Context, args []string, warnings io.Writer) (map[string]string, error) {
	versions := map[string]string{}

	for _, argument := range args {
		name, version, named := strings.Cut(argument, ":")
		if !named || !source.IsExact(version) {
			return nil, fmt.Errorf("%s names no exact version; give PROVIDER:VERSION, e.g. infrastructure-aws:v2.11.1", argument)
		}

		p, err := o.management.find(ctx, name)
		if err != nil {
			return nil, err
		}

		versions[v1alpha2.Label(p)] = version
	}

	if o.contract == "" {
		return versions, nil
	}

	installed, err := o.management.installed(ctx, warnings)
	if err != nil {
		return nil, err
	}

	for _, plan := range makePlans(installed) {
		if plan.Contract != o.contract {
			continue
		}

		if plan.Blocked != "" {
			return nil, fmt.Errorf("the upgrade to contract %s is not possible: %s", o.contract, plan.Blocked)
		}

		for _, step := range plan.Steps {
			if step.To != "" {
				versions[step.Provider] = step.To
			}
		}

		return versions, nil
	}

	return nil, fmt.Errorf(
		"no version of core has the contract %s; `capstan upgrade plan` shows what there is",
		o.contract,
	)
}
