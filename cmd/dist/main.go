// Command release makes what is published: the operator's image, the programs for all platforms,
// the chart and the manifests, with checksums, a bill of materials and the licenses of everything
// in them. It needs no network once the Go modules are there, no container engine, and runs in the
// module's folder: `make image`, `make licenses`, `make release`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage:
  release image    make the operator's image as an OCI archive
  release rootfs   write the files of the operator's image into a folder
  release licenses check the licenses of all dependencies
  release dist     make everything that is published
"-h" after any of them lists its flags`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)

	stop()

	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}

	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	version := flags.String("version", "dev", "version, such as v1.2.3")

	switch args[0] {
	case "image":
		output := flags.String("output", "capstan-image.tar", "OCI archive to write")

		list := flags.String("platforms", "linux/amd64,linux/arm64", "platforms, separated by commas")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}

		return imageCommand(ctx, out, *output, *version, *list)
	case "rootfs":
		output := flags.String("output", "rootfs", "folder to write")

		arch := flags.String("arch", "", "architecture; empty is this machine's")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}

		return writeRootFS(ctx, *output, *version, *arch)
	case "licenses":
		return licensesCommand(ctx, out)
	case "dist":
		output := flags.String("output", "dist", "folder to write; what is in it goes")

		list := flags.String(
			"platforms",
			"linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64",
			"platforms, separated by commas",
		)
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}

		platforms, err := parsePlatforms(*list)
		if err != nil {
			return err
		}

		return dist(ctx, out, *output, *version, platforms)
	}

	return fmt.Errorf("unknown command %q; %s", args[0], usage)
}

func imageCommand(ctx context.Context, out io.Writer, file, version, list string) error {
	platforms, err := parsePlatforms(list)
	if err != nil {
		return err
	}

	digest, err := writeImage(ctx, file, version, platforms)
	if err != nil {
		return err
	}

	_, err = fmt.Fprintf(out, "%s:%s@%s in %s\n", repository, version, digest, file)

	return err
}

func licensesCommand(ctx context.Context, out io.Writer) error {
	modules, err := licenses(ctx)
	if err != nil {
		return err
	}

	_, err = fmt.Fprintf(out, "the licenses of all %d modules are allowed\n", len(modules))

	return err
}
