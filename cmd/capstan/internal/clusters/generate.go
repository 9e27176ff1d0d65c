// Package clusters has the commands about a cluster as a whole: objects that do not conform to contracts, its status
// page, and templates of new clusters.
package clusters

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen/supply/clustertemplate"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// sourceCluster is the value of --source for the chart in the management cluster.
const sourceCluster = "cluster"

// generateOptions are the flags of `generate cluster`.
type generateOptions struct {
	*cli.Options

	cluster *cli.ClusterFlags
	request clustertemplate.Request

	infrastructure       string
	source               string
	config               string
	controlPlaneMachines int64
	workerMachines       int64
	listVariables        bool
}

// NewGenerateCommand returns `capstan generate`.
func NewGenerateCommand(options *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "generate",
		Short:   "Generate manifests from templates of providers",
		Example: `  capstan generate cluster dev --kubernetes-version v1.34.0 | kubectl apply -f -`,
	}
	cmd.AddCommand(newGenerateClusterCommand(options))

	return cmd
}

func newGenerateClusterCommand(options *cli.Options) *cobra.Command {
	o := &generateOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Generate the manifests of a workload cluster from a provider's template",
		Long: `Generate the manifests of a workload cluster from a template of an infrastructure provider, like
clusterctl generate cluster.

The templates are part of the provider's chart. --source selects where that is:
  cluster    the chart that the operator keeps in the management cluster (the default)
  FILE.tgz   a chart
  DIR        a folder of releases in clusterctl's local-repository layout, of a provider, or of one
             version, such as DIR/infrastructure-aws/v2.11.1

The variables of a template come from flags, from the environment and from the configuration file
(NAME: value), in this order of precedence. A ClusterClass that the template needs is included if it
is not in the management cluster. With a chart or a folder, the management cluster is only accessed
if a flag such as --kubeconfig or --context selects it.`,
		Example: `  capstan generate cluster dev --kubernetes-version v1.34.0 | kubectl apply -f -
  capstan generate cluster dev --infrastructure aws:v2.11.1 --kubernetes-version v1.34.0 --source providers/
  capstan generate cluster dev --source infrastructure-aws-2.11.1.tgz --list-variables`,
		Args: cli.Arguments(1, 1, "the name of one cluster"),
	}
	o.addFlags(cmd)

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("control-plane-machine-count") {
			o.request.ControlPlaneMachines = &o.controlPlaneMachines
		}

		if cmd.Flags().Changed("worker-machine-count") {
			o.request.WorkerMachines = &o.workerMachines
		}

		return o.run(cmd.Context(), args)
	}

	return cmd
}

func (o *generateOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)

	flags.StringVarP(
		&o.infrastructure,
		"infrastructure",
		"i",
		"",
		"Infrastructure provider, as name[:version]. Default: the only one, in the installed or newest version.",
	)
	flags.StringVar(&o.request.Flavor, "flavor", "", "Flavor of the template.")
	flags.StringVar(
		&o.source,
		"source",
		sourceCluster,
		"Where the templates are: cluster, a chart's .tgz file or a folder.",
	)

	flags.StringVar(
		&o.request.Namespace,
		"target-namespace",
		"",
		"Namespace of the workload cluster's objects. Default: that of the kubeconfig's context.",
	)
	flags.StringVar(
		&o.request.KubernetesVersion,
		"kubernetes-version",
		"",
		"Kubernetes version of the cluster. Default: the variable KUBERNETES_VERSION.",
	)
	flags.Int64Var(
		&o.controlPlaneMachines,
		"control-plane-machine-count",
		1,
		"Number of control plane machines; also set by the variable CONTROL_PLANE_MACHINE_COUNT.",
	)
	flags.Int64Var(
		&o.workerMachines,
		"worker-machine-count",
		0,
		"Number of worker machines; also set by the variable WORKER_MACHINE_COUNT. (default 0)",
	)

	flags.BoolVar(&o.listVariables, "list-variables", false, "List the template's variables instead.")
	flags.StringVar(
		&o.config,
		"config",
		"",
		"Configuration file in clusterctl's format. Default: clusterctl's own, if it exists.",
	)
}

func (o *generateOptions) run(ctx context.Context, args []string) error {
	o.request.Name = args[0]

	infrastructure, err := clustertemplate.ParseInfrastructure(o.infrastructure)
	if err != nil {
		return err
	}

	variables, err := clustertemplate.NewVariables(o.config)
	if err != nil {
		return err
	}

	if o.request.Namespace == "" {
		o.request.Namespace, err = o.cluster.ContextNamespace()
		if err != nil {
			return fmt.Errorf("find the current namespace: %w; set --target-namespace", err)
		}
	}

	management, err := o.management()
	if err != nil {
		return err
	}

	templates, err := o.templates(ctx, management, infrastructure)
	if err != nil {
		return err
	}

	if o.listVariables {
		list, err := templates.Variables(o.request, variables)
		if err != nil {
			return err
		}

		return o.printVariables(list)
	}

	manifests, err := templates.Generate(ctx, o.request, variables, management)
	if err != nil {
		return err
	}

	for _, class := range manifests.MissingClasses {
		o.Warnf(
			"the cluster needs ClusterClass %s, which %s does not contain; make sure that it exists in the management cluster",
			class,
			templates,
		)
	}

	o.Printf("%s", manifests.YAML)

	return nil
}

// templates reads the templates from the source.
func (o *generateOptions) templates(
	ctx context.Context,
	management client.Client,
	infrastructure clustertemplate.Infrastructure,
) (*clustertemplate.Set, error) {
	if o.source == sourceCluster {
		if namespace := o.cluster.Namespace(); namespace != "" {
			management = client.NewNamespacedClient(management, namespace)
		}

		return clustertemplate.FromCluster(ctx, management, infrastructure)
	}

	info, err := os.Stat(o.source)
	if err != nil {
		return nil, fmt.Errorf("--source: %w; use cluster, a chart's .tgz file or a folder", err)
	}

	if info.IsDir() {
		return clustertemplate.FromFolder(ctx, o.source, infrastructure)
	}

	return clustertemplate.FromArchive(o.source, infrastructure)
}

// management connects to the management cluster. It returns nil if the cluster is not needed and not
// selected.
func (o *generateOptions) management() (client.Client, error) {
	if o.source != sourceCluster && !o.cluster.Named() {
		return nil, nil
	}

	cluster, err := o.cluster.Connect()
	if err != nil {
		return nil, fmt.Errorf("%w, or use a chart or a folder with --source", err)
	}

	return cluster.Client, nil
}

// printVariables lists variables like clusterctl does.
func (o *generateOptions) printVariables(variables []clustertemplate.Variable) error {
	var required, optional strings.Builder

	for _, v := range variables {
		if v.Default == nil {
			fmt.Fprintf(&required, "  - %s\n", v.Name)
		} else {
			fmt.Fprintf(&optional, "  - %s\t(defaults to %s)\n", v.Name, *v.Default)
		}
	}

	w := tabwriter.NewWriter(o.Out, 0, 4, 2, ' ', tabwriter.FilterHTML)

	if required.Len() > 0 {
		fmt.Fprint(w, "Required Variables:\n", required.String())
	}

	if optional.Len() > 0 {
		fmt.Fprint(w, "\nOptional Variables:\n", optional.String())
	}

	fmt.Fprintln(w)

	return w.Flush()
}
