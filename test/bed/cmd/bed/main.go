// Command bed builds the programs of the test bed, or runs a bed manually:
//
//	go run ./test/bed/cmd/bed build
//	go run ./test/bed/cmd/bed up
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/tools"
)

const usage = `usage:
  bed build    build missing or outdated programs of the test bed into bin/
  bed up       build missing programs, start a bed and run it until Ctrl-C; "bed up -h" lists options`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "bed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}

	switch args[0] {
	case "build":
		set, err := tools.Find()
		if err != nil {
			return err
		}

		return set.Build(ctx, out)
	case "up":
		return up(ctx, args[1:], out)
	}

	return fmt.Errorf("unknown command %q; %s", args[0], usage)
}

func up(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("bed up", flag.ContinueOnError)
	options := bed.Options{Log: out}
	flags.IntVar(&options.Nodes, "nodes", bed.DefaultNodes, "simulated nodes; a negative number for none")
	flags.BoolVar(&options.WithoutCertManager, "without-cert-manager", false, "omit the CRDs of cert-manager")
	flags.StringVar(&options.LogDir, "logs", "", "folder for logs to keep after the bed has stopped")

	registry := flags.Bool("registry", false, "also run an OCI registry")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}

	set, err := tools.Find()
	if err != nil {
		return err
	}

	if !*registry {
		set = set.OfBed()
	}

	options.Programs = set
	if err := set.Build(ctx, out); err != nil {
		return err
	}

	start := time.Now()

	b, err := bed.Start(ctx, options)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, b.Stop()) }()

	fmt.Fprintf(out, "The bed is up after %.1f s. In another shell:\n\n", time.Since(start).Seconds())
	fmt.Fprintf(
		out,
		"  export KUBECONFIG=%s\n  export PATH=%s:$PATH\n\n",
		b.Kubeconfig(),
		filepath.Dir(b.Binary(tools.Kubectl)),
	)

	if *registry {
		address, err := b.StartRegistry(ctx)
		if err != nil {
			return err
		}

		fmt.Fprintf(out, "OCI registry (plain HTTP): %s\n", address)
	}

	fmt.Fprintf(out, "Requests are logged in %s. Ctrl-C stops the bed and removes it.\n", b.AuditLog())

	return b.Wait(ctx)
}
