package providers

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// upgradeApplyOptions are the flags of `upgrade apply`.
type upgradeApplyOptions struct {
	*cli.Options

	cluster           *cli.ClusterFlags
	planner           *cli.PlannerFlags
	wait              *cli.WaitFlags
	contract, version string
	only              []string
	dryRun            bool
	allowDowngrade    bool
}

func newUpgradeApplyCommand(options *cli.Options) *cobra.Command {
	o := &upgradeApplyOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "apply {PROVIDER:VERSION... | --contract CONTRACT | --version VERSION}",
		Short: "Upgrade providers",
		Long: `Set spec.version of the providers at once, and wait until they are ready. The
operator upgrades them in the right order. What a provider asks for already is
applied again, such as a version that has failed.

The versions are those that you name; with --contract, the newest ones that work
with it, as in "capstan upgrade plan"; with --version, that version, or the
newest in that range. Providers without a newer version are not changed.`,
		Example: `  capstan upgrade apply --contract v1beta2
  capstan upgrade apply cluster-api:v1.13.5 infrastructure-aws:v2.11.1
  capstan upgrade apply --version '~1.13' --dry-run \
    --only cluster-api,bootstrap-kubeadm,control-plane-kubeadm`,
		Args:              o.checkArguments,
		ValidArgsFunction: cli.CompleteProviderVersions,
		RunE:              cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	o.planner = cli.AddPlannerFlags(flags)
	o.wait = cli.AddWaitFlags(flags, "all providers are ready")
	flags.StringVar(&o.contract, "contract", "",
		"Upgrade to the newest versions for this contract of core, such as v1beta2.")
	flags.StringVar(&o.version, "version", "", "Upgrade to this version, or to the newest in this range, such as ~1.13.")
	flags.StringSliceVar(&o.only, "only", nil, "Providers to upgrade, with --contract or --version. Default: all.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only show what would be upgraded.")
	flags.BoolVar(&o.allowDowngrade, "allow-downgrade", false, "Accept versions that are older than the installed ones.")

	return cmd
}

// checkArguments makes sure that the versions are given in one way.
func (o *upgradeApplyOptions) checkArguments(cmd *cobra.Command, args []string) error {
	ways := 0

	for _, given := range []bool{len(args) > 0, o.contract != "", o.version != ""} {
		if given {
			ways++
		}
	}

	switch {
	case ways != 1:
		return cli.UsageError(cmd, "either providers with versions, or --contract, or --version")
	case len(args) > 0 && len(o.only) > 0:
		return cli.UsageError(cmd, "providers with versions, or --only with --contract or --version")
	}

	return nil
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

	versions, newest, err := o.versions(ctx, cluster, found, args)
	if err != nil {
		return err
	}

	selected := slices.DeleteFunc(found, func(p v1alpha2.Provider) bool { return versions[v1alpha2.FullName(p)] == "" })

	// Nothing is changed if one of the providers must not be.
	if err := o.checkDowngrades(selected, versions); err != nil {
		return err
	}

	if len(args) > 0 { // the others are chosen from what the sources have
		if err := o.checkOffered(ctx, cluster, selected, versions); err != nil {
			return err
		}
	}

	for _, p := range selected {
		if err := o.upgrade(ctx, cluster, p, versions[v1alpha2.FullName(p)]); err != nil {
			return err
		}
	}

	if o.dryRun || !o.wait.Wait || len(selected) == 0 {
		return nil
	}

	return o.await(ctx, cluster, selected, newest)
}

// checkDowngrades returns an error if a provider would be downgraded without that being allowed.
func (o *upgradeApplyOptions) checkDowngrades(selected []v1alpha2.Provider, versions map[string]string) error {
	for _, p := range selected {
		version := versions[v1alpha2.FullName(p)]
		if !o.allowDowngrade && cli.IsOlder(version, p) {
			return fmt.Errorf("nothing was changed: %s of %s is older than the installed %s; if that is intended, "+
				"add --allow-downgrade", version, v1alpha2.FullName(p), *p.GetStatus().InstalledVersion)
		}
	}

	return nil
}

// sourceTimeout limits what the sources are asked before an upgrade: the operator asks them as well.
const sourceTimeout = 10 * time.Second

// checkOffered returns an error if the source of a provider does not have the version that it would be upgraded to, as
// far as that is known here.
func (o *upgradeApplyOptions) checkOffered(
	ctx context.Context, cluster *cli.Cluster, selected []v1alpha2.Provider, versions map[string]string,
) error {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()

	silent := *o.Options
	silent.ErrOut = io.Discard // what is not known here does not matter

	planner, err := o.planner.Planner(ctx, &silent, cluster)
	if err != nil {
		return nil
	}

	var group errgroup.Group

	group.SetLimit(parallelSources)

	for _, p := range selected {
		version := versions[v1alpha2.FullName(p)]
		if isWanted(p, version) {
			continue
		}

		group.Go(func() error {
			if err := planner.CheckOffered(ctx, p, version); err != nil {
				return fmt.Errorf("nothing was changed: %s: %w", v1alpha2.FullName(p), err)
			}

			return nil
		})
	}

	return group.Wait()
}

// isWanted reports whether a provider asks for a version already.
func isWanted(p v1alpha2.Provider, version string) bool {
	return ranges.IsSame(ranges.Exact(p.GetSpec().Version, p.GetStatus().DesiredVersion), version)
}

// upgrade sets the version of a provider, or has the operator apply again what the provider asks for already: a version
// that has failed, or that another program has replaced. A range that it was chosen from stays.
func (o *upgradeApplyOptions) upgrade(
	ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider, version string,
) error {
	direction := "upgrad"
	if cli.IsOlder(version, p) {
		direction = "downgrad"
	}

	if o.dryRun {
		o.Printf("%s: would be %sed to %s", v1alpha2.FullName(p), direction, version)
		return nil
	}

	change := map[string]any{"spec": map[string]any{"version": version}}
	message := direction + "ing to " + version

	if isWanted(p, version) {
		change = map[string]any{"metadata": cli.TryAgain()}
		message = "applying " + version + " again"
	}

	if err := cluster.Patch(ctx, p, change); err != nil {
		return err
	}

	o.Printf("%s: %s", v1alpha2.FullName(p), message)

	return nil
}

// versions returns the versions to upgrade to, by the full names of the providers, and the labels of those that have
// their newest one.
func (o *upgradeApplyOptions) versions(
	ctx context.Context, cluster *cli.Cluster, found []v1alpha2.Provider, args []string,
) (versions map[string]string, newest []string, err error) {
	if len(args) > 0 {
		versions, err = givenVersions(found, args)
		return versions, nil, err
	}

	plans, err := o.plans(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}

	versions = map[string]string{}

	for _, plan := range plans {
		if plan.Blocked != "" {
			return nil, nil, fmt.Errorf("the upgrade%s is not possible: %s", plan.in(), plan.Blocked)
		}

		for _, step := range plan.Steps {
			switch {
			case step.To != "":
				versions[step.Resource] = step.To
			case len(o.only) == 0: // the sources of others were not read
				newest = append(newest, step.Provider)
			}
		}
	}

	slices.Sort(newest)

	if len(versions) == 0 {
		o.Printf("There is nothing to upgrade; `capstan upgrade plan` shows the available upgrades.")
	}

	return versions, slices.Compact(newest), nil
}

// givenVersions returns the versions in the arguments, by the full names of the providers.
func givenVersions(found []v1alpha2.Provider, args []string) (map[string]string, error) {
	versions := map[string]string{}

	for _, argument := range args {
		name, version, _ := strings.Cut(argument, ":")
		if !ranges.IsExact(version) {
			return nil, fmt.Errorf(
				"%s contains no exact version; expected PROVIDER:VERSION, such as infrastructure-aws:v2.11.1",
				argument,
			)
		}

		p, err := cli.FindOne(found, name)
		if err != nil {
			return nil, err
		}

		versions[v1alpha2.FullName(p)] = version
	}

	return versions, nil
}

// plans returns the plan of each cluster for the contract or the version. A cluster whose core cannot have the contract
// is left out.
func (o *upgradeApplyOptions) plans(ctx context.Context, cluster *cli.Cluster) ([]upgradePlan, error) {
	if _, err := ranges.Parse(o.version); err != nil {
		return nil, err
	}

	planner, err := o.planner.Planner(ctx, o.Options, cluster)
	if err != nil {
		return nil, err
	}

	installed, err := readAvailable(ctx, o.Options, cluster, planner, o.only)
	if err != nil {
		return nil, err
	}

	if unknown := unknown(installed); len(unknown) > 0 {
		return nil, fmt.Errorf("nothing was upgraded, because the available versions of %s are unknown; make the "+
			"sources reachable from here, or leave these providers out with --only", strings.Join(unknown, ", "))
	}

	var (
		plans   []upgradePlan
		without []string // clusters
	)

	for _, group := range byCluster(installed) {
		if o.version != "" {
			plan, err := planVersion(group, o.version)
			if err != nil {
				return nil, err
			}

			plans = append(plans, plan)

			continue
		}

		ofCluster := planCluster(group)

		i := slices.IndexFunc(ofCluster, func(plan upgradePlan) bool { return plan.Contract == o.contract })
		if i >= 0 {
			plans = append(plans, ofCluster[i])
			continue
		}

		without = append(without, ofCluster[0].in())
	}

	if len(plans) == 0 && o.version == "" {
		return nil, fmt.Errorf(
			"no version of core has the contract %s; `capstan upgrade plan` shows the available upgrades", o.contract)
	}

	for _, in := range without {
		o.Warnf("no version of core%s has the contract %s", in, o.contract)
	}

	return plans, nil
}
