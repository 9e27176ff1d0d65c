package providers

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/upgradeplan"
)

// NewUpgradeCommand returns `capstan upgrade`.
func NewUpgradeCommand(options *cli.Options) *cobra.Command {
	cmd := &cobra.Command{Use: "upgrade", Short: "Plan and apply upgrades of providers"}
	cmd.AddCommand(newUpgradePlanCommand(options), newUpgradeApplyCommand(options))

	return cmd
}

// planUpgrades returns the possible upgrades of the installed providers. A provider whose source
// cannot be read has no available versions, which causes a warning.
func planUpgrades(
	ctx context.Context,
	o *cli.Options,
	cluster *cli.Cluster,
	flags *cli.PlannerFlags,
) ([]upgradeplan.Plan, error) {
	found, err := cluster.Providers(ctx)
	if err != nil {
		return nil, err
	}

	planner, err := flags.Planner(ctx, o, cluster)
	if err != nil {
		return nil, err
	}
	defer planner.Close()

	var installed []upgradeplan.Provider

	for _, p := range found {
		status := p.GetStatus()
		if status.InstalledVersion == nil || status.Contract == nil {
			o.Warnf("%s is left out, because it is not installed yet: %s", v1alpha2.FullName(p), cli.Readiness(p))
			continue
		}

		versions, err := planner.Versions(ctx, p)
		if err != nil {
			o.Warnf("the available versions of %s are unknown: %s", v1alpha2.Label(p), err)
		}

		provider := upgradeplan.Provider{
			Label:    v1alpha2.Label(p),
			Version:  *status.InstalledVersion,
			Contract: *status.Contract,
		}
		for _, v := range versions {
			provider.Available = append(provider.Available, upgradeplan.Version(v))
		}

		installed = append(installed, provider)
	}

	return upgradeplan.New(installed), nil
}
