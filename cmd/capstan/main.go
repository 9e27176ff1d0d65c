// Command capstan works with provider charts from the command line, with or without a cluster. Installed as kubectl-capstan
// it is also a kubectl plugin.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev"

func main() {
	root := &cobra.Command{
		Use:           "capstan",
		Short:         "Cluster API providers as Helm charts",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(chartCommand(), generateCommand(), providersCommand(), versionsCommand(), mirrorCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
