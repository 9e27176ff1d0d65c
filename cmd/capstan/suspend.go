package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func suspendCommand() *cobra.Command {
	return suspendOrResume(
		"suspend PROVIDER...",
		"Make the operator leave providers alone",
		`Make the operator leave providers alone: nothing of them is installed, upgraded, corrected or removed until they are resumed. Their
status is still kept up to date, and they go on running.`,
		true,
	)
}

func resumeCommand() *cobra.Command {
	return suspendOrResume("resume PROVIDER...", "Make the operator look after providers again",
		"Make the operator look after providers again that were suspended.", false)
}

func suspendOrResume(usage, short, long string, suspend bool) *cobra.Command {
	var m *management

	cmd := &cobra.Command{
		Use: usage, Short: short, Long: long,
		Args: someProviders(usage),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.connect(); err != nil {
				return err
			}

			return setSuspended(cmd.Context(), m, args, suspend, cmd.OutOrStdout())
		},
	}
	m = managementFlags(cmd.Flags())

	return cmd
}

func setSuspended(ctx context.Context, m *management, args []string, suspend bool, out io.Writer) error {
	providers, err := m.findAll(ctx, args)
	if err != nil {
		return err
	}

	done := map[bool]string{true: "is suspended", false: "is no longer suspended"}[suspend]
	for _, p := range providers {
		if p.GetSpec().Suspend != suspend {
			if err := m.merge(ctx, p, map[string]any{"spec": map[string]any{"suspend": suspend}}); err != nil {
				return err
			}
		}

		fmt.Fprintln(out, nameOf(p), done)
	}

	return nil
}
