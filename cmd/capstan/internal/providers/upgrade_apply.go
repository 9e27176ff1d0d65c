package providers

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/completion"
)

// upgradeApplyOptions are the flags of `upgrade apply`.
type upgradeApplyOptions struct {
	*cli.Options

	cluster  *cli.ClusterFlags
	planner  *cli.PlannerFlags
	wait     *cli.WaitFlags
	contract string
}

func newUpgradeApplyCommand(options *cli.Options) *cobra.Command {
	o := &upgradeApplyOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "apply {PROVIDER:VERSION... | --contract CONTRACT}",
		Short: "Upgrade providers",
		Long: `Upgrade providers to the given versions, or all providers to the newest versions that work with a
--contract, as shown by upgrade plan. This sets spec.version of their resources in the order of the
plan, and waits for each provider before it changes the next.`,
		Example: `  capstan upgrade apply --contract v1beta2
  capstan upgrade apply cluster-api:v1.13.5 infrastructure-aws:v2.11.1`,
		Args: func(cmd *cobra.Command, args []string) error {
			hasContract := o.contract != ""
			if hasContract == (len(args) > 0) {
				return cli.UsageError(cmd, "either providers with versions or a contract")
			}

			return nil
		},
		ValidArgsFunction: completion.ProviderVersions,
		RunE:              cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	o.planner = cli.AddPlannerFlags(flags)
	o.wait = cli.AddWaitFlags(flags, "each provider is ready, before the next is changed")
	flags.StringVar(
		&o.contract,
		"contract",
		"",
		"Upgrade all providers to their newest versions that work with this contract, such as v1beta2.",
	)

	return cmd
}

func (o *upgradeApplyOptions) run(ctx context.Context, args []string) error {
	cluster, err := o.cluster.Connect()
	if err != nil {
		return err
	}

	found, err := cluster.Providers(ctx)
	if err != nil {
		return err
	}

	var versions map[string]string
	if o.contract != "" {
		versions, err = o.plannedVersions(ctx, cluster)
	} else {
		versions, err = givenVersions(ctx, cluster, args)
	}

	if err != nil {
		return err
	}

	for _, p := range found {
		version, selected := versions[v1alpha2.Label(p)]
		if !selected {
			continue
		}

		change := map[string]any{"spec": map[string]any{"version": version}}
		if err := cluster.Patch(ctx, p, change); err != nil {
			return err
		}

		o.Printf("%s: upgrading to %s", v1alpha2.FullName(p), version)

		if err := cluster.WaitAll(ctx, []v1alpha2.Provider{p}, o.wait, cli.Ready, o.PrintLine); err != nil {
			return err
		}
	}

	return nil
}

// givenVersions returns the versions in the arguments, by the labels of the providers.
func givenVersions(ctx context.Context, cluster *cli.Cluster, args []string) (map[string]string, error) {
	versions := map[string]string{}

	for _, argument := range args {
		name, version, _ := strings.Cut(argument, ":")
		if !ranges.IsExact(version) {
			return nil, fmt.Errorf(
				"%s contains no exact version; expected PROVIDER:VERSION, such as infrastructure-aws:v2.11.1",
				argument,
			)
		}

		p, err := cluster.Find(ctx, name)
		if err != nil {
			return nil, err
		}

		versions[v1alpha2.Label(p)] = version
	}

	return versions, nil
}

// plannedVersions returns the versions of the plan for the contract, by the labels of the providers.
func (o *upgradeApplyOptions) plannedVersions(
	ctx context.Context,
	cluster *cli.Cluster,
) (map[string]string, error) {
	plans, err := planUpgrades(ctx, o.Options, cluster, o.planner)
	if err != nil {
		return nil, err
	}

	for _, plan := range plans {
		if plan.Contract != o.contract {
			continue
		}

		if plan.Blocked != "" {
			return nil, fmt.Errorf("the upgrade to contract %s is not possible: %s", o.contract, plan.Blocked)
		}

		versions := map[string]string{}

		for _, step := range plan.Steps {
			if step.To != "" {
				versions[step.Provider] = step.To
			}
		}

		return versions, nil
	}

	return nil, fmt.Errorf(
		"no version of core has the contract %s; `capstan upgrade plan` shows the available upgrades",
		o.contract,
	)
}
