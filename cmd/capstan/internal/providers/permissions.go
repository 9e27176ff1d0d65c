package providers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/permissions"
	"github.com/capstan-project/capstan/controllers/usage"
)

// permissionsOptions are the flags of `permissions`.
type permissionsOptions struct {
	*cli.Options

	resource *cli.ResourceFlags
	account  string
}

// NewPermissionsCommand returns `capstan permissions`.
func NewPermissionsCommand(options *cli.Options) *cobra.Command {
	o := &permissionsOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "permissions {PROVIDER | --filename FILE}",
		Short: "Print the roles that a ServiceAccount needs to install a provider",
		Long: `The Roles and the ClusterRole, with their bindings, let the ServiceAccount
install, upgrade, correct and remove the provider. They cover the installed
version and the wanted one, so apply them before an upgrade.

They include what the provider's own roles grant. The ServiceAccount itself is
not created.`,
		Example: `  capstan permissions -f aws.yaml | kubectl apply -f -
  capstan permissions infrastructure-aws --version v2.12.0
  capstan permissions infrastructure-aws --service-account installer`,
		ValidArgsFunction: cli.CompleteProvider,
		RunE:              cli.Run(o.run),
	}
	o.resource = cli.AddResourceFlags(cmd)
	cmd.Flags().StringVar(&o.account, "service-account", "",
		"ServiceAccount, as [NAMESPACE/]NAME. Default: spec.serviceAccountName of the resource.")

	return cmd
}

func (o *permissionsOptions) run(ctx context.Context, args []string) error {
	cluster, err := o.resource.Cluster.Connect()
	if err != nil {
		return err
	}

	p, err := o.resource.Resource(ctx, o.Options, cluster, args)
	if err != nil {
		return err
	}

	account, err := o.serviceAccount(p)
	if err != nil {
		return err
	}

	installation, err := o.installation(ctx, cluster, p)
	if err != nil {
		return err
	}

	if err := o.addManaged(ctx, cluster, installation); err != nil {
		return err
	}

	roles, err := installation.Roles(account)
	if err != nil {
		return err
	}

	for _, w := range roles.Warnings {
		o.Warnf("%s", w)
	}

	printer := &cli.Printer{Writer: o.Out, Format: cli.FormatYAML}

	return printer.Manifests(roles.Objects, "")
}

// serviceAccount returns the account that needs the permissions.
func (o *permissionsOptions) serviceAccount(p v1alpha2.Provider) (types.NamespacedName, error) {
	account := types.NamespacedName{
		Namespace: p.GetNamespace(),
		Name:      cmp.Or(o.account, p.GetSpec().ServiceAccountName),
	}
	if namespace, name, found := strings.Cut(o.account, "/"); found {
		account = types.NamespacedName{Namespace: namespace, Name: name}
	}

	if account.Name == "" || account.Namespace == "" {
		return account, errors.New("the ServiceAccount is unknown: set --service-account, or spec.serviceAccountName")
	}

	return account, nil
}

// installation describes what the account installs: what the resource asks for, and what is installed.
func (o *permissionsOptions) installation(
	ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider,
) (*permissions.Installation, error) {
	current, _, err := cluster.Installed(ctx, p)
	if err != nil {
		return nil, err
	}

	planner, err := o.resource.Planner.Planner(ctx, o.Options, cluster)
	if err != nil {
		return nil, err
	}

	planned, err := planner.Plan(ctx, p)
	if err != nil {
		return nil, err
	}

	return &permissions.Installation{
		Mapper:   cluster.Client.RESTMapper(),
		Provider: p,
		Chart:    planned.Chart.Chart,
		Values:   planned.Release.Values,
		Objects:  slices.Concat(planned.Rendered.Objects, current.Objects),
		Remote:   p.GetSpec().KubeConfig != nil,
	}, nil
}

// addManaged adds the types that the provider manages besides those of its own CRDs to an installation. Their CRDs are
// in the cluster of the provider, which the command does not access if it is another one than that of the resource.
func (o *permissionsOptions) addManaged(ctx context.Context, cluster *cli.Cluster, i *permissions.Installation) error {
	undefined := usage.ManagedTypes(i.Provider)

	if !i.Remote {
		var err error
		if i.Managed, undefined, err = usage.ManagedCRDs(ctx, cluster.Client, i.Provider); err != nil {
			return err
		}
	}

	for _, t := range undefined {
		o.Warnf("the roles do not include list for %s of spec.additionalManagedTypes, whose CustomResourceDefinitions "+
			"are not in this cluster; if they are defined later, run the command again, so that the account can list "+
			"the objects that block a removal", t)
	}

	return nil
}
