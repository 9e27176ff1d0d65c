package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/clustertemplate"
)

const (
	// fromCluster is the --from that means the chart kept in the management cluster.
	fromCluster = "cluster"
	// requestTimeout bounds each call to the management cluster.
	requestTimeout = 30 * time.Second
)

func generateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "generate", Short: "Make manifests from what providers publish"}
	cmd.AddCommand(generateClusterCommand())

	return cmd
}

// generateOptions are the flags of `generate cluster`.
type generateOptions struct {
	clustertemplate.Request
	controlPlaneMachines, workerMachines int64

	infrastructure, from, config string
	kubeconfig, context          string
	listVariables                bool
}

func generateClusterCommand() *cobra.Command {
	o := &generateOptions{}
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Make the manifests of a workload cluster from a provider's template",
		Long: `Make the manifests of a workload cluster from a template of an infrastructure provider, as clusterctl generate cluster does.

Templates travel in the provider's chart. --from says where that is:
  cluster    the chart that the operator keeps in the management cluster (the default)
  FILE.tgz   a chart
  DIR        releases in clusterctl's local-repository layout (DIR/infrastructure-aws/v2.11.1), a provider's folder or a version's

A template's variables come from the environment, then from the configuration file (NAME: value); flags come before both.
A ClusterClass that the template names comes along if it is not in the management cluster. With a chart or a folder the
management cluster is only asked when --kubeconfig or --context names it.`,
		Example: `  capstan generate cluster dev --kubernetes-version v1.34.0 | kubectl apply -f -
  capstan generate cluster dev --infrastructure aws:v2.11.1 --flavor eks --from providers/
  capstan generate cluster dev --from infrastructure-aws-2.11.1.tgz --list-variables`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give the cluster's name, and nothing else beside the flags: capstan generate cluster NAME")
			}

			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if cmd.Flags().Changed("control-plane-machine-count") {
				o.ControlPlaneMachines = &o.controlPlaneMachines
			}

			if cmd.Flags().Changed("worker-machine-count") {
				o.WorkerMachines = &o.workerMachines
			}

			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd)

	return cmd
}

func (o *generateOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(
		&o.infrastructure,
		"infrastructure",
		"i",
		"",
		"the infrastructure provider, name[:version]; by default the only one there is, in the installed or newest version",
	)
	flags.StringVarP(&o.Flavor, "flavor", "f", "", "the flavor of the template")
	flags.StringVar(&o.from, "from", fromCluster, "where the templates are: cluster, a chart's .tgz or a folder")
	flags.StringVarP(
		&o.Namespace,
		"target-namespace",
		"n",
		"",
		"the namespace of the cluster's objects; by default that of the kubeconfig's context",
	)
	flags.StringVar(
		&o.KubernetesVersion,
		"kubernetes-version",
		"",
		"the cluster's Kubernetes version; by default the variable KUBERNETES_VERSION",
	)
	flags.Int64Var(
		&o.controlPlaneMachines,
		"control-plane-machine-count",
		1,
		"the number of control plane machines; the variable CONTROL_PLANE_MACHINE_COUNT can set it too",
	)
	flags.Int64Var(
		&o.workerMachines,
		"worker-machine-count",
		0,
		"the number of worker machines; the variable WORKER_MACHINE_COUNT can set it too (default 0)",
	)
	flags.BoolVar(&o.listVariables, "list-variables", false, "list the template's variables instead")
	flags.StringVar(
		&o.config,
		"config",
		"",
		"a file of variables; by default clusterctl's own configuration file, if there is one",
	)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the management cluster's kubeconfig; by default kubectl's")
	flags.StringVar(&o.context, "context", "", "the context of the kubeconfig")
}

func (o *generateOptions) run(ctx context.Context, out, warnings io.Writer) error {
	want, err := clustertemplate.ParseInfrastructure(o.infrastructure)
	if err != nil {
		return err
	}

	variables, err := clustertemplate.NewVariables(o.config)
	if err != nil {
		return err
	}

	if o.Namespace == "" {
		if o.Namespace, err = o.currentNamespace(); err != nil {
			return err
		}
	}

	management, err := o.management()
	if err != nil {
		return err
	}

	templates, err := o.templates(ctx, management, want)
	if err != nil {
		return err
	}

	if o.listVariables {
		list, err := templates.Variables(o.Request, variables)
		if err != nil {
			return err
		}

		return printVariables(out, list)
	}

	manifests, err := templates.Generate(ctx, o.Request, variables, management)
	if err != nil {
		return err
	}

	for _, class := range manifests.MissingClasses {
		fmt.Fprintf(
			warnings,
			"Warning: the cluster needs ClusterClass %s, which %s does not bring; make sure that the management cluster has it\n",
			class,
			templates,
		)
	}

	_, err = fmt.Fprintf(out, "%s\n", manifests.YAML)

	return err
}

// templates reads the templates from where --from says.
func (o *generateOptions) templates(
	ctx context.Context,
	management client.Client,
	want clustertemplate.Infrastructure,
) (*clustertemplate.Set, error) {
	if o.from == fromCluster {
		return clustertemplate.FromCluster(ctx, management, want)
	}

	info, err := os.Stat(o.from)
	if err != nil {
		return nil, fmt.Errorf("--from: %w; give cluster, a chart's .tgz or a folder", err)
	}

	if info.IsDir() {
		return clustertemplate.FromFolder(ctx, o.from, want)
	}

	return clustertemplate.FromArchive(o.from, want)
}

// management connects to the management cluster; nil when it is not to be asked.
func (o *generateOptions) management() (client.Client, error) {
	if o.from != fromCluster && o.kubeconfig == "" && o.context == "" {
		return nil, nil
	}

	config, err := o.clientConfig().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf(
			"find the management cluster: %w; name its --kubeconfig, or a chart or a folder with --from",
			err,
		)
	}

	config.Timeout = requestTimeout

	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha2.AddToScheme(scheme)); err != nil {
		return nil, err
	}

	return client.New(config, client.Options{Scheme: scheme})
}

// currentNamespace is that of the kubeconfig's context, and without a kubeconfig the one that
// kubectl takes, too.
func (o *generateOptions) currentNamespace() (string, error) {
	namespace, _, err := o.clientConfig().Namespace()
	if clientcmd.IsEmptyConfig(err) {
		return metav1.NamespaceDefault, nil
	}

	if err != nil {
		return "", fmt.Errorf("find the current namespace: %w; name one with --target-namespace", err)
	}

	return namespace, nil
}

// clientConfig finds the kubeconfig by kubectl's rules.
func (o *generateOptions) clientConfig() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig

	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.context},
	)
}

// printVariables lists variables in clusterctl's form.
func printVariables(out io.Writer, variables []clustertemplate.Variable) error {
	var required, optional strings.Builder

	for _, v := range variables {
		if v.Default == nil {
			fmt.Fprintf(&required, "  - %s\n", v.Name)
		} else {
			fmt.Fprintf(&optional, "  - %s\t(defaults to %s)\n", v.Name, *v.Default)
		}
	}

	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.FilterHTML)
	if required.Len() > 0 {
		fmt.Fprint(w, "Required Variables:\n", required.String())
	}

	if optional.Len() > 0 {
		fmt.Fprint(w, "\nOptional Variables:\n", optional.String())
	}

	fmt.Fprintln(w)

	return w.Flush()
}
