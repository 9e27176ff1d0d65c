// Command conformance checks a release of a provider on a test bed, for the CI of the provider:
//
//	go run ./test/conformance/cmd/conformance ../my-provider/out/infrastructure-example/v1.1.0
//
// The exit code is 2 if the release does not conform, and 1 if the check is not possible.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/test/conformance"
)

// exitFindings is the exit code of `capstan chart lint` and `capstan audit` for findings, too.
const exitFindings = 2

// errFindings is returned if a release does not conform.
var errFindings = errors.New("does not conform")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])

	stop()

	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return
	}

	fmt.Fprintln(os.Stderr, "conformance:", err)

	if errors.Is(err, errFindings) {
		os.Exit(exitFindings)
	}

	os.Exit(1)
}

// flags are the flags that the options of a check do not have as they are.
type flags struct {
	output, failOn, baseline string
	manager                  string
	variables                []string
}

// parse returns the options of a check.
func parse(args []string) (conformance.Options, *flags, error) {
	f := &flags{}
	o := conformance.Options{Variables: map[string]string{}}
	manager := &conformance.Manager{}

	set := pflag.NewFlagSet("conformance", pflag.ContinueOnError)
	set.StringVarP(&f.output, "output", "o", "text", "Output format: "+strings.Join(lint.Formats, ", ")+".")
	set.StringVar(&f.failOn, "fail-on", string(lint.Error), "Least level of findings that are a failure: error, warning.")
	set.StringVar(&f.baseline, "baseline", "",
		"File with the findings of an earlier run, from --output json, which do not count again.")
	set.StringVar(&o.Identity.Type, "type", "",
		"Type of the provider, such as infrastructure, if the folder does not tell.")
	set.StringVar(&o.Identity.Name, "name", "", "Name of the provider, if the folder does not tell.")
	set.StringVar(&o.Identity.Version, "version", "", "Version of the provider, if the folder does not tell.")
	set.StringVar(&o.Previous, "previous", "", "Folder of an earlier version to upgrade from.")
	set.StringArrayVar(&o.Others, "with", nil, "Folder of a release of core or another provider; may be repeated.")
	set.DurationVar(&o.Timeout, "timeout", conformance.DefaultTimeout, "Longest time of each step.")
	set.StringArrayVar(&f.variables, "set", nil, "Value of a variable, as NAME=VALUE; may be repeated.")
	set.StringVar(&manager.Cluster, "cluster", "", "Output of clusterctl generate cluster, for the manager.")
	set.DurationVar(&manager.Idle, "idle", conformance.DefaultIdle, "How long the manager must do nothing.")
	set.StringVar(&f.manager, "manager", "", "Program of the manager and its arguments, separated by spaces.")

	if err := set.Parse(args); err != nil {
		return o, f, err
	}

	if set.NArg() != 1 {
		return o, f, errors.New("expected the folder of a release, such as out/infrastructure-example/v1.1.0")
	}

	if (f.manager == "") != (manager.Cluster == "") {
		return o, f, errors.New("--manager and --cluster must be set together")
	}

	if f.manager != "" {
		manager.Command = strings.Fields(f.manager)
		o.Manager = manager
	}

	o.Release = set.Arg(0)

	for _, variable := range f.variables {
		name, value, found := strings.Cut(variable, "=")
		if !found {
			return o, f, fmt.Errorf("--set %s: expected NAME=VALUE", variable)
		}

		o.Variables[name] = value
	}

	var err error
	if o.FailOn, err = lint.ParseFailOn(f.failOn); err == nil && f.baseline != "" {
		o.Baseline, err = lint.ReadBaseline(f.baseline)
	}

	return o, f, err
}

func run(ctx context.Context, args []string) error {
	options, f, err := parse(args)
	if err != nil {
		return err
	}

	environment, err := conformance.Start(ctx, options.Others...)
	if err != nil {
		return err
	}

	findings, err := environment.Check(ctx, options)
	if err := errors.Join(err, environment.Stop()); err != nil {
		return err
	}

	if err := lint.Write(os.Stdout, f.output, conformance.Rules(), findings); err != nil {
		return err
	}

	if lint.Fail(findings, options.FailOn) {
		return fmt.Errorf("%s %w: %s", options.Release, errFindings, lint.Summary(findings))
	}

	return nil
}
