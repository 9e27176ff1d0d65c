package cli

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// flagFunctions complete flags that have the same meaning in all commands.
var flagFunctions = map[string]cobra.CompletionFunc{
	"namespace":          completeNamespaces,
	"operator-namespace": completeNamespaces,
	"context":            completeContexts,
}

// AddCompletions adds completion to the flags of a command and of all its subcommands.
func AddCompletions(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		complete := flagFunctions[flag.Name]
		if values := flag.Annotations[valuesAnnotation]; len(values) > 0 {
			complete = cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
		}

		if complete != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, complete) // fails only for flags that do not exist
		}
	})

	for _, sub := range cmd.Commands() {
		AddCompletions(sub)
	}
}

// completeNamespaces completes a flag with the namespaces of the management cluster.
func completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))

	names := readCluster(cmd, func(ctx context.Context, c *Cluster) (names []cobra.Completion, err error) {
		err = c.Client.List(ctx, list)
		for _, namespace := range list.Items {
			names = append(names, namespace.Name)
		}

		return names, err
	})

	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeContexts completes a flag with the contexts of the kubeconfig.
func completeContexts(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, _ = cmd.Flags().GetString("kubeconfig")

	config, err := rules.Load()
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}
