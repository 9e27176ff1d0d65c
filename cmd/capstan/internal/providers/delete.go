package providers

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// deleteOptions are the flags of `delete`.
type deleteOptions struct {
	*cli.Options

	cluster *cli.ClusterFlags
	wait    *cli.WaitFlags

	includeCRDs      bool
	includeNamespace bool
	force            bool
}

// NewDeleteCommand returns `capstan delete`.
func NewDeleteCommand(options *cli.Options) *cobra.Command {
	o := &deleteOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "delete PROVIDER...",
		Short: "Remove providers from the cluster",
		Long: `Remove providers from the cluster. Their CRDs, their namespaces and all objects of users are kept
unless flags ask for more.

The operator does not remove a provider while objects of its kinds exist, nor core before all
others. Until then the resource stays, and its condition Ready shows what blocks the deletion. With
--force a provider is removed even if it is in use; its objects are kept, but nothing reconciles
them any more. CRDs are never deleted while objects of their kinds exist, and a namespace is not
deleted while it contains anything else that Capstan knows.`,
		Example: `  capstan delete infrastructure-aws
  capstan delete infrastructure-docker bootstrap-kubeadm --include-crd --include-namespace`,
		Args: cli.Arguments(1, -1, "at least one provider"),
		RunE: cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	o.wait = cli.AddWaitFlags(flags, "the providers are removed")
	flags.BoolVar(
		&o.includeCRDs,
		"include-crd",
		false,
		"Delete the providers' CRDs as well, once there are no objects of their kinds.",
	)
	flags.BoolVar(&o.includeNamespace, "include-namespace", false, "Delete the providers' namespaces as well.")
	flags.BoolVar(&o.force, "force", false, "Remove providers even if they are in use.")

	return cmd
}

func (o *deleteOptions) run(ctx context.Context, args []string) error {
	cluster, err := o.cluster.Connect()
	if err != nil {
		return err
	}

	found, err := cluster.FindAll(ctx, args)
	if err != nil {
		return err
	}

	for _, p := range found {
		if err := o.delete(ctx, cluster, p); err != nil {
			return err
		}
	}

	if !o.wait.Wait {
		return nil
	}

	for _, p := range found {
		name := v1alpha2.FullName(p)
		if err := cluster.Wait(
			ctx,
			p,
			o.wait.Timeout,
			cli.Gone,
			func(line string) { o.Printf("%s", line) },
		); err != nil {
			return err
		}

		o.Printf("%s: removed", name)
	}

	return nil
}

// delete deletes a provider's resource. The operator reads from annotations what to delete with it.
func (o *deleteOptions) delete(ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider) error {
	annotations := map[string]any{}
	if o.includeCRDs {
		annotations[v1alpha2.DeleteCRDsAnnotation] = "true"
	}

	if o.includeNamespace {
		annotations[v1alpha2.DeleteNamespaceAnnotation] = "true"
	}

	if o.force {
		annotations[v1alpha2.DeleteInUseAnnotation] = "true"
	}

	if len(annotations) > 0 {
		change := map[string]any{"metadata": map[string]any{"annotations": annotations}}
		if err := cluster.Patch(ctx, p, change); err != nil {
			return err
		}
	}

	if err := cluster.Client.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", v1alpha2.FullName(p), err)
	}

	o.Printf("%s: deletion requested", v1alpha2.FullName(p))

	return nil
}
