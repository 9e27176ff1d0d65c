package providers

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/offers"
)

func newUpgradePlanCommand(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show the available upgrades",
		Long: `For each cluster and contract of Cluster API, the newest version of every
provider that works with it is shown, in the order in which to upgrade.
Pre-releases are left out.

The versions come from the providers' sources. If a source cannot be read, the
newest version is unknown, and the exit code is 1.`,
		Example: `  capstan upgrade plan
  capstan upgrade plan -o json`,
		Args: cli.Arguments(0, 0, "no arguments"),
	}
	flags := cli.AddClusterFlags(cmd.Flags())
	planning := cli.AddPlannerFlags(cmd.Flags())
	output := cli.AddOutputFlags(cmd.Flags())

	cmd.RunE = cli.Run(func(ctx context.Context, _ []string) error {
		printer, cluster, err := o.Connect(output, flags)
		if err != nil {
			return err
		}

		planner, err := planning.Planner(ctx, o, cluster)
		if err != nil {
			return err
		}

		installed, err := readAvailable(ctx, o, cluster, planner, nil)
		if err != nil {
			return err
		}

		unknown, plans := unknown(installed), planUpgrades(installed)

		if err := findDropped(ctx, o, planner, installed, plans); err != nil {
			return err
		}

		if err := printPlans(o, printer, plans, unknown, planning.Repeated()); err != nil {
			return err
		}

		if len(unknown) > 0 {
			return &cli.ExitError{Code: 1} // the warnings say why
		}

		return nil
	})

	return cmd
}

func printPlans(o *cli.Options, printer *cli.Printer, plans []upgradePlan, unknown []string, flags string) error {
	return printer.Print(plans, func() error {
		if len(plans) == 0 {
			printer.Printf("There are no installed providers.")
		}

		for i, plan := range plans {
			if i > 0 {
				printer.Printf("")
			}

			if err := printPlan(o, printer, plan, unknown, flags); err != nil {
				return err
			}
		}

		return nil
	})
}

// printPlan prints a plan, and the command for it, which needs flags.
func printPlan(o *cli.Options, printer *cli.Printer, plan upgradePlan, unknown []string, flags string) error {
	rows := cli.Map(plan.Steps, func(step upgradeStep) cli.Row {
		if step.To != "" {
			return cli.Row{Cells: []string{step.Provider, step.From, step.To, step.Contract}, Style: cli.Green}
		}

		unchanged := "-"
		if step.Unknown != "" {
			unchanged = "unknown"
		}

		return cli.Row{Cells: []string{step.Provider, step.From, unchanged, step.Contract}}
	})

	printer.Printf("%s", printer.Paint(cli.Bold, "Contract "+plan.Contract+plan.in()))

	if err := printer.Table([]string{"PROVIDER", "INSTALLED", "UPGRADE TO", "CONTRACT"}, rows); err != nil {
		return err
	}

	for _, step := range plan.Steps {
		if skips := offers.SkipsMessage(step.To, step.SkippedMinors); skips != "" {
			printer.Printf("%s", printer.Paint(cli.Yellow, step.Provider+" "+skips+"."))
		}

		printDropped(printer, step.To, step.DroppedCRDs, step.Findings)
	}

	switch {
	case plan.Blocked != "":
		printer.Printf("%s", printer.Paint(cli.Red, "Not possible: "+plan.Blocked+"."))
	case !plan.Upgrades() && len(unknown) > 0:
		printer.Printf("No upgrades are known.")
	case !plan.Upgrades():
		printer.Printf("All providers have their newest version for this contract.")
	default:
		// All that is installed by kubeconfigs of a namespace is in it.
		namespace, _, isRemote := strings.Cut(plan.KubeConfig, "/")

		command := "capstan upgrade apply --contract " + plan.Contract
		if isRemote {
			command += " --namespace " + namespace
		}

		printer.Printf("%s", o.Named("To upgrade the providers, run `"+command+flags+"`."))
	}

	return nil
}
