// Package charts has the commands about what providers publish: versions, components and charts.
package charts

import (
	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// NewCommand returns `capstan chart`.
func NewCommand(options *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "chart",
		Short:   "Build Helm charts of providers",
		Example: "  capstan chart build providers/infrastructure-aws",
	}
	cmd.AddCommand(newBuildCommand(options))

	return cmd
}
