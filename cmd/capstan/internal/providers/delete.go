package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/usage"
)

// deleteOptions are the flags of `delete`.
type deleteOptions struct {
	*cli.Options

	cluster   *cli.ClusterFlags
	wait      *cli.WaitFlags
	selection *cli.SelectionFlags

	includeCRDs      bool
	includeNamespace bool
	force            bool
	dryRun           bool
	yes              bool
}

// NewDeleteCommand returns `capstan delete`.
func NewDeleteCommand(o *cli.Options) *cobra.Command {
	opts := &deleteOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "delete {PROVIDER... | --all}",
		Short: "Remove providers from the cluster",
		Long: `Core is removed last. The providers' CRDs, their namespaces and all objects of
users stay unless flags ask for more.

A provider is not removed while objects of its kinds exist, nor core before all
others: the resource stays, and its condition Ready shows what blocks the
deletion. With --force, a provider is removed even if it is in use; its objects
stay, but nothing reconciles them. CRDs are never deleted while objects of their
kinds exist, nor a namespace that contains anything else that Capstan knows.

With --all, the command asks, and nothing is deleted unless all providers can be
removed.`,
		Example: `  capstan delete infrastructure-aws
  capstan delete infrastructure-docker --include-crd --include-namespace
  capstan delete --all --dry-run`,
	}
	flags := cmd.Flags()
	opts.cluster = cli.AddClusterFlags(flags)
	opts.wait = cli.AddWaitFlags(flags, "the providers are removed")
	opts.selection = cli.AddSelectionFlags(cmd)
	flags.BoolVar(&opts.includeCRDs, "include-crd", false,
		"Delete the providers' CRDs as well, once there are no objects of their kinds.")
	flags.BoolVar(&opts.includeNamespace, "include-namespace", false, "Delete the providers' namespaces as well.")
	flags.BoolVar(&opts.force, "force", false, "Remove providers even if they are in use.")
	flags.BoolVar(&opts.dryRun, "dry-run", false, "Only list what would be removed, and what prevents it.")
	flags.BoolVar(&opts.yes, "yes", false, "Do not ask.")

	cmd.ValidArgsFunction = cli.CompleteProviders
	cmd.RunE = cli.Run(opts.run)

	return cmd
}

func (o *deleteOptions) run(ctx context.Context, args []string) error {
	cluster, found, err := o.selection.Find(ctx, o.Options, o.cluster, args)
	if err != nil || len(found) == 0 {
		return err
	}

	slices.Reverse(found) // core last

	if o.selection.All || o.dryRun {
		if err := o.check(ctx, cluster, found); err != nil || o.dryRun {
			return err
		}
	}

	if o.selection.All && !o.yes {
		question := fmt.Sprintf("Remove %s?", object.Count(len(found), "provider"))
		if err := o.Confirm(ctx, question); err != nil {
			return err
		}
	}

	// All are requested before the first is waited for: the operator deletes a namespace only if nothing stays in it.
	for _, p := range found {
		if err := o.delete(ctx, cluster, p); err != nil {
			return err
		}
	}

	if err := cluster.WaitAll(ctx, o.Options, found, o.wait, cli.Gone); err != nil {
		return err
	}

	if err := o.waitForNamespaces(ctx, cluster, found); err != nil || !o.wait.Wait {
		return err
	}

	o.printKept(ctx, cluster, found)

	return nil
}

// printKept prints which CRDs of removed providers stay. Those of providers that stay installed are in use.
func (o *deleteOptions) printKept(ctx context.Context, cluster *cli.Cluster, removed []v1alpha2.Provider) {
	labels := sets.New[string]()

	for _, p := range removed {
		if p.GetSpec().KubeConfig == nil && !v1alpha2.Asks(p, v1alpha2.KeepInstalledAnnotation) {
			labels.Insert(v1alpha2.Label(p))
		}
	}

	cluster.PrintKept(ctx, o.Options, selection.In, sets.List(labels)...)
}

// waitForNamespaces waits until the namespaces that the operator has deleted are gone.
func (o *deleteOptions) waitForNamespaces(
	ctx context.Context, cluster *cli.Cluster, removed []v1alpha2.Provider,
) error {
	if !o.includeNamespace || !o.wait.Wait {
		return nil
	}

	names := sets.New[string]()
	for _, p := range removed {
		names.Insert(p.GetNamespace())
	}

	return cli.Poll(ctx, o.wait.Timeout, o.Retries(), func(ctx context.Context) (string, error) {
		for _, name := range sets.List(names) {
			if pending, err := o.checkNamespace(ctx, cluster, name); pending != "" || err != nil {
				return pending, err
			}

			names.Delete(name)
		}

		return "", nil
	})
}

// checkNamespace returns why a namespace is not gone yet. One that stays, or that the user may not read, is not waited
// for.
func (o *deleteOptions) checkNamespace(ctx context.Context, cluster *cli.Cluster, name string) (string, error) {
	namespace := &corev1.Namespace{}

	err := cluster.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)

	switch {
	case apierrors.IsNotFound(err):
		o.Printf("Namespace %s: removed", name)
		return "", nil
	case apierrors.IsForbidden(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read namespace %s: %w", name, err)
	case namespace.DeletionTimestamp.IsZero():
		return "", nil
	}

	var reasons []string

	for _, c := range namespace.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			reasons = append(reasons, c.Message)
		}
	}

	return fmt.Sprintf("namespace %s is still being deleted: %s", name,
		cmp.Or(strings.Join(reasons, "; "), "its objects are not gone yet")), nil
}

// check finds out what would be removed, and prints it for a dry run. The error lists what prevents it.
func (o *deleteOptions) check(ctx context.Context, cluster *cli.Cluster, found []v1alpha2.Provider) error {
	all, err := cluster.AllProviders(ctx)
	if err != nil {
		return err
	}

	finder := &usage.Finder{Client: cluster.Client, Metadata: cluster.Metadata}
	c := &deleteChecker{deleteOptions: o, cluster: cluster, usage: finder, selected: found, all: all}
	effects := make([]*effect, 0, len(found))

	for _, p := range found {
		e, err := c.check(ctx, p)
		if err != nil {
			return fmt.Errorf("find out what would be removed with %s: %w", v1alpha2.FullName(p), err)
		}

		effects = append(effects, e)
	}

	if !o.dryRun {
		return refusal(effects)
	}

	for _, e := range effects {
		(&cli.Printer{Writer: o.Out}).Tree(e.tree())
	}

	if refusal(effects) != nil {
		return errors.New("not all of this can be removed now")
	}

	return nil
}

// delete deletes a provider's resource. The operator reads from annotations what to delete with it.
func (o *deleteOptions) delete(ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider) error {
	annotations := map[string]any{}

	for annotation, asked := range map[string]bool{
		v1alpha2.DeleteCRDsAnnotation:      o.includeCRDs,
		v1alpha2.DeleteNamespaceAnnotation: o.includeNamespace,
		v1alpha2.DeleteInUseAnnotation:     o.force,
	} {
		if asked {
			annotations[annotation] = "true"
		}
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
