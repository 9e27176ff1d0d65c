package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/action"
	labelselection "k8s.io/apimachinery/pkg/selection"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/object"
)

// NewUninstallCommand returns `capstan uninstall`.
func NewUninstallCommand(o *cli.Options) *cobra.Command {
	var (
		cluster   *cli.ClusterFlags
		namespace string
		yes       bool
	)

	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the operator from a cluster",
		Long: `The operator's Helm release is uninstalled, unless there are providers. The
command prints what stays, and how to delete that.`,
		Example: `  capstan uninstall`,
		Args:    cli.Arguments(0, 0, "no arguments"),
		RunE: cli.Run(func(ctx context.Context, _ []string) error {
			connected, err := cluster.Connect()
			if err != nil {
				return err
			}

			r := &chartRelease{name: operatorName, namespace: cmp.Or(namespace, operatorNamespace)}

			if err := r.removable(ctx, connected, cluster); err != nil {
				return err
			}

			if !yes {
				if err := o.Confirm(ctx, fmt.Sprintf("Uninstall release %s/%s?", r.namespace, r.name)); err != nil {
					return err
				}
			}

			if err := r.uninstall(o, cluster); err != nil {
				return err
			}

			connected.PrintKept(ctx, o, labelselection.Exists)

			return nil
		}),
	}
	cluster = cli.AddClusterFlags(cmd.Flags())
	cmd.Flags().Lookup("namespace").Hidden = true // the providers of all namespaces count
	cmd.Flags().StringVar(&namespace, "operator-namespace", operatorNamespace, "Namespace of the operator.")
	cmd.Flags().BoolVar(&yes, "yes", false, "Do not ask.")

	return cmd
}

// removable returns an error unless the release exists, and there are no providers.
func (r *chartRelease) removable(ctx context.Context, cluster *cli.Cluster, flags *cli.ClusterFlags) error {
	existing, err := cluster.AllProviders(ctx)
	if err != nil {
		return err
	}

	if len(existing) > 0 {
		return fmt.Errorf("nothing was changed: %s would stay without an operator; run `capstan delete --all` first",
			object.Count(len(existing), "provider"))
	}

	last, err := r.last(flags.Getter())
	if err == nil && last == nil {
		err = errors.New("there is no Helm release " + r.namespace + "/" + r.name + " of the operator; set " +
			"--operator-namespace, or remove the operator as it was installed, such as by kubectl delete -f capstan.yaml")
	}

	return err
}

// uninstall uninstalls the release, and prints what stays.
func (r *chartRelease) uninstall(o *cli.Options, flags *cli.ClusterFlags) error {
	c, err := r.configuration(flags.Getter())
	if err != nil {
		return err
	}

	if _, err := action.NewUninstall(c).Run(r.name); err != nil {
		return fmt.Errorf("uninstall release %s/%s: %w", r.namespace, r.name, err)
	}

	o.Printf("Release %s/%s is uninstalled. cert-manager stays, and:", r.namespace, r.name)
	o.Printf("  the resource types; to delete them: kubectl get crds -o name | grep -E " +
		`'/(providers\.clusterctl|.*\.operator)\.cluster\.x-k8s\.io$' | xargs kubectl delete`)
	o.Printf("  the namespace; to delete it: kubectl delete namespace %s", r.namespace)

	return nil
}
