package main

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/ui"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// loopback is the address that the page is served at.
const loopback = "127.0.0.1"

// newUICommand returns `capstan ui`.
func newUICommand(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the status of the providers in your browser",
		Long: `The command prints the URL of a page on this computer, and serves it until you
press Ctrl-C. The page updates itself, and changes nothing.

Anyone who has the URL sees what your kubeconfig allows you to read, except for
the values of variables and Secrets.`,
		Example: `  capstan ui
  capstan ui --context production --port 8080`,
		Args: cli.Arguments(0, 0, "no arguments"),
	}
	flags := cli.AddClusterFlags(cmd.Flags())
	port := cmd.Flags().Uint16("port", 0, "Port of the page. Default: any that is free.")

	cmd.RunE = cli.Run(func(ctx context.Context, _ []string) error {
		cluster, err := flags.Connect()
		if err != nil {
			return err
		}

		// This fails with a helpful message if the cluster cannot be used.
		_, warning, err := cluster.Visible(ctx)
		if err != nil {
			return err
		}

		if warning != "" {
			o.Warnf("%s", warning)
		}

		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(int(*port))))
		if err != nil {
			return fmt.Errorf("serve the status page: %w; select another --port", err)
		}

		site := ui.NewSite(clusterReader{cluster.Views(), cluster}, shownServer(cluster.Config), listener.Addr())

		o.Printf("The status page is at %s", site.URL())
		o.Printf("Press Ctrl-C to stop.")

		return site.Serve(ctx, listener)
	})

	return cmd
}

// shownServer returns the address of an API server without what may be credentials, also in the path.
func shownServer(config *rest.Config) string {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "" // no request could have been sent to it
	}

	return transport.Origin(server)
}

// clusterReader reads what the page shows.
type clusterReader struct {
	*view.Reader

	cluster *cli.Cluster
}

// Providers lists the providers that the user may list.
func (r clusterReader) Providers(ctx context.Context) ([]v1alpha2.Provider, error) {
	found, _, err := r.cluster.Visible(ctx)

	return found, err
}
