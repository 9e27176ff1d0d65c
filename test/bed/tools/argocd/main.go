// Command argocd is Argo CD's application controller and its repository server, in one program as in Argo CD's own
// image. It leaves out Argo CD's other components, a quarter of what would have to be compiled.
package main

import (
	"fmt"
	"os"

	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "argocd", SilenceUsage: true}
	root.AddCommand(controller.NewCommand(), reposerver.NewCommand())

	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
