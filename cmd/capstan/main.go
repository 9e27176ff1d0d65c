// Command capstan works with provider charts and with the providers of a management cluster from
// the command line. Installed as kubectl-capstan it is also a kubectl plugin.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev"

// exitError ends the program with a code of its own. There is nothing to say about it.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)

	stop()

	if exit := new(exitError); errors.As(err, &exit) {
		os.Exit(exit.code)
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "capstan",
		Short:         "Cluster API providers as Helm charts",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		chartCommand(),
		crdsCommand(),
		generateCommand(),
		mirrorCommand(),
		statusCommand(),
		historyCommand(),
		diffCommand(),
		upgradeCommand(),
		rollbackCommand(),
		suspendCommand(),
		resumeCommand(),
		deleteCommand(),
		providersCommand(),
		versionsCommand(),
	)

	return root
}
