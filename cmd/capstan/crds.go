package main

import "github.com/spf13/cobra"

func crdsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "crds", Short: "Look after the CRDs of providers"}
	cmd.AddCommand(crdsCheckCommand())
	return cmd
}
