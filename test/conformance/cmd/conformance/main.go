// Command conformance checks a release of a provider on a test bed, for the CI of the provider:
//
//	go run ./test/conformance/cmd/conformance ../my-provider/out/infrastructure-example/v1.1.0
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/test/conformance"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	format := flag.String("output", "text", "Output format: "+strings.Join(lint.Formats, ", ")+".")
	manager := &conformance.Manager{}
	options := conformance.Options{Variables: map[string]string{}}
	flag.StringVar(&options.Previous, "previous", "", "Folder of an earlier version to upgrade from.")
	flag.Func("with", "Folder of a release of core or another provider; may be repeated.", func(folder string) error {
		options.Others = append(options.Others, folder)
		return nil
	})
	flag.DurationVar(&options.Timeout, "timeout", conformance.DefaultTimeout, "Longest time of each step.")
	flag.StringVar(&manager.Cluster, "cluster", "", "Output of clusterctl generate cluster, for the manager.")
	flag.DurationVar(&manager.Idle, "idle", conformance.DefaultIdle, "How long the manager must do nothing.")
	flag.Func("manager", "Program of the manager and its arguments, separated by spaces.", func(text string) error {
		manager.Command = strings.Fields(text)
		options.Manager = manager

		return nil
	})
	flag.Func("set", "Value of a variable, as NAME=VALUE; may be repeated.", func(text string) error {
		name, value, found := strings.Cut(text, "=")
		if !found {
			return errors.New("expected NAME=VALUE")
		}

		options.Variables[name] = value

		return nil
	})
	flag.Parse()

	if flag.NArg() != 1 {
		return errors.New("expected the folder of a release, such as out/infrastructure-example/v1.1.0")
	}

	if (options.Manager == nil) != (manager.Cluster == "") {
		return errors.New("--manager and --cluster must be set together")
	}

	options.Release = flag.Arg(0)

	environment, err := conformance.Start(ctx, options.Others...)
	if err != nil {
		return err
	}

	findings, err := environment.Check(ctx, options)
	if err := errors.Join(err, environment.Stop()); err != nil {
		return err
	}

	if err := lint.Write(os.Stdout, *format, conformance.Rules(), findings); err != nil {
		return err
	}

	if n := lint.Count(findings, lint.Error) + lint.Count(findings, lint.Warning); n > 0 {
		return fmt.Errorf("%s does not conform: %s", options.Release, lint.Summary(findings))
	}

	return nil
}
