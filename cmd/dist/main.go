// Command dist builds the artifacts of a release: the operator's image, the programs for all
// platforms, the chart and the manifests, with checksums, a bill of materials and the licenses of
// all dependencies. It runs in the module's root folder and needs no container engine and, once the
// Go modules are downloaded, no network. `make image`, `make licenses` and `make release` run it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = `usage:
  dist image       build the operator's image as an OCI archive
  dist rootfs      write the files of the operator's image to a folder
  dist licenses    check the licenses of all dependencies
  dist release     build all artifacts of a release
run a command with -h for its flags`

var (
	imagePlatforms   = []string{"linux/amd64", "linux/arm64"}
	releasePlatforms = []string{
		"linux/amd64", "linux/arm64",
		"darwin/amd64", "darwin/arm64",
		"windows/amd64", "windows/arm64",
	}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)

	stop()

	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}

	command, args := args[0], args[1:]

	switch command {
	case "image":
		return imageCommand(ctx, args, out)
	case "rootfs":
		return rootFSCommand(ctx, args)
	case "licenses":
		return licensesCommand(ctx, args, out)
	case "release":
		return releaseCommand(ctx, args, out)
	}

	return fmt.Errorf("unknown command %q; %s", command, usage)
}

func imageCommand(ctx context.Context, args []string, out io.Writer) error {
	flags, version := newFlags("image")
	output := flags.String("output", "capstan-image.tar", "OCI archive to write")
	list := platformsFlag(flags, imagePlatforms)

	if err := flags.Parse(args); err != nil {
		return err
	}

	platforms, err := parsePlatforms(*list)
	if err != nil {
		return err
	}

	digest, err := writeImage(ctx, *output, *version, platforms)
	if err != nil {
		return err
	}

	_, err = fmt.Fprintf(out, "%s:%s@%s in %s\n", repository, *version, digest, *output)

	return err
}

func rootFSCommand(ctx context.Context, args []string) error {
	flags, version := newFlags("rootfs")
	output := flags.String("output", "rootfs", "folder to write to")
	arch := flags.String("arch", "", "architecture (default: this machine's)")

	if err := flags.Parse(args); err != nil {
		return err
	}

	return writeRootFS(ctx, *output, *version, *arch)
}

func licensesCommand(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("dist licenses", flag.ContinueOnError)
	if err := flags.Parse(args); err != nil {
		return err
	}

	modules, err := licenses(ctx)
	if err != nil {
		return err
	}

	_, err = fmt.Fprintf(out, "the licenses of all %d modules are allowed\n", len(modules))

	return err
}

func releaseCommand(ctx context.Context, args []string, out io.Writer) error {
	flags, version := newFlags("release")
	output := flags.String("output", "dist", "folder to write to; its present content is deleted")
	list := platformsFlag(flags, releasePlatforms)

	if err := flags.Parse(args); err != nil {
		return err
	}

	platforms, err := parsePlatforms(*list)
	if err != nil {
		return err
	}

	return release(ctx, &builder{folder: *output, version: *version, platforms: platforms, log: out})
}

// newFlags returns the flags of a command and the value of --version.
func newFlags(command string) (*flag.FlagSet, *string) {
	flags := flag.NewFlagSet("dist "+command, flag.ContinueOnError)
	version := flags.String("version", "dev", "version to build, such as v1.2.3")

	return flags, version
}

func platformsFlag(flags *flag.FlagSet, platforms []string) *string {
	return flags.String("platforms", strings.Join(platforms, ","), "platforms to build for, separated by commas")
}
