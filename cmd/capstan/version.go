package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers"
)

// searchTimeout limits the search for the operator: without a connection, the program's own version is still printed
// soon.
const searchTimeout = 5 * time.Second

// versionOptions are the flags of `version`.
type versionOptions struct {
	*cli.Options

	cluster *cli.ClusterFlags
	output  *cli.OutputFlags

	operatorNamespace string
	client            bool
}

// newVersionCommand returns `capstan version`.
func newVersionCommand(o *cli.Options) *cobra.Command {
	opts := &versionOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of this program and of the operator",
		Long: `The command also shows in which format each of them builds charts, and warns if
this program computes other results than the operator. Without a management
cluster, it shows only the versions of this program.`,
		Example: `  capstan version
  capstan version --client -o json`,
		Args: cli.Arguments(0, 0, "no arguments"),
		RunE: cli.Run(opts.run),
	}
	flags := cmd.Flags()
	opts.cluster = cli.AddClusterFlags(flags)
	opts.output = cli.AddOutputFlags(flags)
	flags.StringVar(&opts.operatorNamespace, "operator-namespace", "", "Namespace of the operator. Default: search all.")
	flags.BoolVar(&opts.client, "client", false, "Only show the versions of this program.")

	return cmd
}

func (o *versionOptions) run(ctx context.Context, _ []string) error {
	printer, err := o.output.Printer(o.Out)
	if err != nil {
		return err
	}

	v := versions{Client: o.ProgramVersion()}

	if !o.client {
		if err := o.findOperator(ctx, &v); err != nil {
			o.Warnf("the operator's version is unknown: %s", err)
		}
	}

	if v.Operator != nil {
		v.Warnings = append(v.Warnings, v.Client.Differences(v.Operator.ProgramVersion)...)
	}

	for _, warning := range v.Warnings {
		o.Warnf("%s", warning)
	}

	return printer.Print(v, func() error { return printer.Table(v.table()) })
}

// findOperator finds the operator, if there is a management cluster.
func (o *versionOptions) findOperator(ctx context.Context, v *versions) error {
	cluster, err := o.cluster.Connect()
	if err != nil {
		if o.cluster.Named() {
			return err
		}

		return nil // none is configured
	}

	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()

	namespace := cmp.Or(o.operatorNamespace, cluster.Namespace)

	installed, err := cli.FindOperator(ctx, cluster.Client, namespace)
	if err != nil {
		return err
	}

	published, err := controllers.ReadPublished(ctx, cluster.Client, installed.Namespace)
	v.Operator = &operator{
		ProgramVersion: cli.OperatorVersion(installed, published), Namespace: installed.Namespace,
		Deployment: installed.Name, Image: cli.OperatorImage(installed),
	}

	if stopped := cluster.StoppedOperator(ctx); stopped != "" {
		v.Warnings = append(v.Warnings, stopped)
	}

	return err
}

// versions is the output of the command.
type versions struct {
	Client cli.ProgramVersion `json:"client"`
	// Operator is nil if there is none, or it was not looked for.
	Operator *operator `json:"operator,omitempty"`
	// Warnings say what follows from differences.
	Warnings []string `json:"warnings,omitempty"`
}

// operator is the operator in the cluster.
type operator struct {
	cli.ProgramVersion
	Namespace  string `json:"namespace"`
	Deployment string `json:"deployment"`
	Image      string `json:"image,omitempty"`
}

// table returns the header and the rows for people.
func (v *versions) table() ([]string, []cli.Row) {
	row := func(name string, c cli.ProgramVersion, place string) cli.Row {
		return cli.Row{Cells: []string{name, cmp.Or(c.Version, "unknown"), cmp.Or(c.ChartFormat, "unknown"), place}}
	}

	rows := []cli.Row{row("capstan", v.Client, "")}
	if v.Operator != nil {
		rows = append(rows, row("operator", v.Operator.ProgramVersion, v.Operator.Namespace+"/"+v.Operator.Deployment))
	}

	return []string{"PROGRAM", "VERSION", "CHART FORMAT", "DEPLOYMENT"}, rows
}
