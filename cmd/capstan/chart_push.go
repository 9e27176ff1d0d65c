package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

func chartPushCommand() *cobra.Command {
	f := &registryFlags{}
	cmd := &cobra.Command{
		Use:   "push CHART.tgz|DIR[/VERSION] oci://REGISTRY/PATH",
		Short: "Push a chart to a registry",
		Long: `Push a chart, or the chart of a provider's folder, to oci://REGISTRY/PATH/<chart>:<version>, and print its reference with the digest. With
http:// in place of oci:// the registry is spoken to without TLS.

helm, Flux and Argo CD read it from there, and so does the operator with --chart-repository oci://REGISTRY/PATH. The same chart pushed
again is the same artifact; a tag that holds anything else is never overwritten.`,
		Example: `  capstan chart push infrastructure-aws-2.11.1.tgz oci://registry.example.com/capi`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.push(cmd.Context(), args[0], args[1], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f.bind(cmd.Flags())

	return cmd
}

func (f *registryFlags) push(ctx context.Context, from, to string, in io.Reader, out io.Writer) error {
	repository, err := oci.ParseRepository(to)
	if err != nil {
		return err
	}

	c, err := openChart(ctx, from)
	if err != nil {
		return err
	}

	client, err := f.client(repository.Registry, in)
	if err != nil {
		return err
	}

	pushed, err := client.PushChart(ctx, repository.Join(c.Metadata.Name).WithTag(oci.ChartTag(c.Metadata.Version)), c)
	if err != nil {
		return err
	}

	fmt.Fprintf(out, "%s\n%s\n", pushed.Reference, pushed.Digest)

	return nil
}

func chartPullCommand() *cobra.Command {
	f := &registryFlags{}
	output := "."
	cmd := &cobra.Command{
		Use:     "pull oci://REGISTRY/PATH/CHART:VERSION [--output FILE|DIR]",
		Short:   "Pull a chart from a registry",
		Long:    `Pull a chart from a registry into a file, as it is there, and print the file and its digest.`,
		Example: `  capstan chart pull oci://registry.example.com/capi/infrastructure-aws:2.11.1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.pull(cmd.Context(), args[0], output, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", output, "a file, or a folder in which the chart gets its usual name")

	return cmd
}

func (f *registryFlags) pull(ctx context.Context, from, output string, in io.Reader, out io.Writer) error {
	pulled, err := f.pullChart(ctx, from, in)
	if err != nil {
		return err
	}

	file, err := chartFile(pulled.Chart, output)
	if err != nil {
		return err
	}

	if err := os.WriteFile(file, pulled.Archive, 0o644); err != nil {
		return err
	}

	fmt.Fprintf(out, "%s\n%s\n", file, pulled.Digest)

	return nil
}
