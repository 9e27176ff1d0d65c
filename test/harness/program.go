package harness

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

// Main runs a program until it ends or is interrupted. If it fails, Main prints the error after the program's
// name and exits with code 1.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}
