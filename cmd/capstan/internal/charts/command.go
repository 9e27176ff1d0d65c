// Package charts has the commands for provider charts.
package charts

import (
	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// NewCommand returns `capstan chart`.
func NewCommand(options *cli.Options) *cobra.Command {
	cmd := &cobra.Command{Use: "chart", Short: "Build, check and publish provider charts"}
	cmd.AddCommand(
		newBuildCommand(options),
		newImagesCommand(options),
		newLintCommand(options),
		newNewCommand(options),
		newPushCommand(options),
		newPullCommand(options),
		newShowCommand(options),
	)

	return cmd
}
