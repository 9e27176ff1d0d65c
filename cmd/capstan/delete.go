package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// defaultTimeout is how long commands wait for the operator.
const defaultTimeout = 10 * time.Minute

// deleteOptions are the flags of `delete`.
type deleteOptions struct {
	management             *management
	crds, namespace, force bool
	wait                   bool
	timeout                time.Duration
}

func deleteCommand() *cobra.Command {
	o := &deleteOptions{}

	const usage = "delete PROVIDER..."

	cmd := &cobra.Command{
		Use:   usage,
		Short: "Remove providers from the cluster",
		Long: `Remove providers from the cluster. Their CRDs, namespaces and everybody's objects stay, unless flags say otherwise.

The operator does not remove a provider while objects of its kinds exist, nor core before all others; the resource then waits, and says
in its condition Ready for what. With --force a provider goes although it is in use: its objects stay, with nothing to look after them.
CRDs are never deleted while there are objects of their kinds, and a namespace not while something else that Capstan knows lives in it.`,
		Example: `  capstan delete infrastructure-aws
  capstan delete infrastructure-docker bootstrap-kubeadm --include-crd --include-namespace`,
		Args: someProviders(usage),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.management.connect(); err != nil {
				return err
			}

			return o.run(cmd.Context(), args, cmd.OutOrStdout())
		},
	}
	o.management = managementFlags(cmd.Flags())
	flags := cmd.Flags()
	flags.BoolVar(
		&o.crds,
		"include-crd",
		false,
		"delete the providers' CRDs too, once there are no objects of their kinds",
	)
	flags.BoolVar(&o.namespace, "include-namespace", false, "delete the providers' namespaces too")
	flags.BoolVar(&o.force, "force", false, "remove providers that are in use")
	flags.BoolVar(&o.wait, "wait", false, "wait until they are gone")
	flags.DurationVar(&o.timeout, "timeout", defaultTimeout, "how long to wait for each")

	return cmd
}

func (o *deleteOptions) run(ctx context.Context, args []string, out io.Writer) error {
	providers, err := o.management.findAll(ctx, args)
	if err != nil {
		return err
	}

	annotations := map[string]any{}

	for annotation, wanted := range map[string]bool{
		v1alpha2.DeleteCRDsAnnotation: o.crds, v1alpha2.DeleteNamespaceAnnotation: o.namespace, v1alpha2.DeleteInUseAnnotation: o.force,
	} {
		if wanted {
			annotations[annotation] = "true"
		}
	}

	for _, p := range providers {
		if len(annotations) > 0 {
			if err := o.management.merge(
				ctx,
				p,
				map[string]any{"metadata": map[string]any{"annotations": annotations}},
			); err != nil {
				return err
			}
		}

		if err := o.management.client.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s: %w", nameOf(p), err)
		}

		fmt.Fprintf(out, "%s is to be removed\n", nameOf(p))
	}

	if !o.wait {
		return nil
	}

	for _, p := range providers {
		name, gone := nameOf(p), func(p v1alpha2.Provider) (bool, error) { return p == nil, nil }
		if err := o.management.wait(ctx, p, o.timeout, func(state string) { fmt.Fprintln(out, state) }, gone); err != nil {
			return err
		}

		fmt.Fprintf(out, "%s is removed\n", name)
	}

	return nil
}

// merge patches a provider's resource; the resource is as it is afterwards.
func (m *management) merge(ctx context.Context, p v1alpha2.Provider, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}

	err = m.client.Patch(ctx, p, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("capstan-cli"))
	if invalid := (*apierrors.StatusError)(nil); errors.As(err, &invalid) && apierrors.IsInvalid(err) {
		return fmt.Errorf("%s does not take the change: %s", nameOf(p), invalid.ErrStatus.Message)
	}

	if err != nil {
		return fmt.Errorf("change %s: %w", nameOf(p), err)
	}

	return nil
}
