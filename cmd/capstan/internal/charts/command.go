// Package charts has the commands about charts of providers and the registries that store them.
package charts

import (
	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// NewCommand returns `capstan chart`.
func NewCommand(options *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "chart",
		Short: "Build and publish provider charts",
		Example: `  capstan chart build providers/infrastructure-aws
  capstan chart push infrastructure-aws-2.11.1.tgz oci://registry.example.com/capi`,
	}
	cmd.AddCommand(
		newBuildCommand(options),
		newImagesCommand(options),
		newPushCommand(options),
		newPullCommand(options),
		newShowCommand(options),
	)

	return cmd
}
