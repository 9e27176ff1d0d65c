package providers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// NewUpgradeCommand returns `capstan upgrade`.
func NewUpgradeCommand(options *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Plan and apply upgrades of providers",
		Example: `  capstan upgrade plan
  capstan upgrade apply --contract v1beta2`,
	}
	cmd.AddCommand(newUpgradePlanCommand(options), newUpgradeApplyCommand(options))

	return cmd
}

// readAvailable returns the installed providers with the versions that their sources have. One whose source
// cannot be read has none, which causes a warning. Only the sources of those that are named are read; without names, of
// all.
func readAvailable(
	ctx context.Context,
	o *cli.Options,
	cluster *cli.Cluster,
	flags *cli.PlannerFlags,
	names []string,
) ([]installedProvider, error) {
	found, err := cluster.Providers(ctx)
	if err != nil {
		return nil, err
	}

	selected := slices.Clone(found)

	if len(names) > 0 {
		if selected, err = cli.Named(selected, names); err != nil {
			return nil, err
		}
	}

	planner, err := flags.Planner(ctx, o, cluster)
	if err != nil {
		return nil, err
	}
	defer planner.Close()

	var installed []installedProvider

	for _, p := range found {
		status := p.GetStatus()
		if status.InstalledVersion == nil || status.Contract == nil {
			o.Warnf("%s is left out, because it is not installed yet: %s", v1alpha2.FullName(p), cli.Readiness(p))
			continue
		}

		provider := installedProvider{
			Label:    v1alpha2.Label(p),
			Version:  *status.InstalledVersion,
			Contract: *status.Contract,
		}

		if slices.Contains(selected, p) {
			versions, err := planner.Versions(ctx, p)
			if err != nil {
				o.Warnf("the available versions of %s are unknown: %s", v1alpha2.Label(p), err)
				provider.Unknown = err.Error()
			}

			provider.Available = versions
		}

		installed = append(installed, provider)
	}

	return installed, nil
}

// checkKnown returns an error if it is not known which versions there are of a provider.
func checkKnown(installed []installedProvider) error {
	var unknown []string

	for _, p := range installed {
		if p.Unknown != "" {
			unknown = append(unknown, p.Label)
		}
	}

	if len(unknown) == 0 {
		return nil
	}

	return fmt.Errorf("the available versions of %s are unknown, because the sources cannot be read; make them reachable "+
		"from here, or give --config a file with sources that are", strings.Join(unknown, ", "))
}
