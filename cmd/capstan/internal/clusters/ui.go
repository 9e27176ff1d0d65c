// Package clusters has the commands about a cluster as a whole: objects that do not conform to contracts, and its
// status page.
package clusters

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/ui"
)

const (
	// loopback is the address that the page is served at.
	loopback = "127.0.0.1"
	// syncTimeout limits the first read of all providers.
	syncTimeout = time.Minute
)

// uiOptions are the flags of `ui`.
type uiOptions struct {
	*cli.Options

	cluster *cli.ClusterFlags
	port    uint16
}

// NewUICommand returns `capstan ui`.
func NewUICommand(shared *cli.Options) *cobra.Command {
	o := &uiOptions{Options: shared}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve a status page of the providers to your browser",
		Long: `Serve a status page of the providers to your browser, until you interrupt the command. The page updates
itself, and changes nothing.

The command prints the URL of the page, at the loopback address of this computer. Anyone who has the URL
sees what your kubeconfig allows you to read, except for the values of variables and Secrets.`,
		Example: `  capstan ui
  capstan ui --context production --port 8080`,
		Args: cli.Arguments(0, 0, "no arguments"),
		RunE: cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	flags.Uint16Var(&o.port, "port", 0, "Port of the page. Default: any that is free.")

	return cmd
}

func (o *uiOptions) run(ctx context.Context, _ []string) error {
	cluster, err := o.cluster.Connect()
	if err != nil {
		return err
	}

	// This fails with a helpful message if the cluster cannot be used.
	if _, err := cluster.Providers(ctx); err != nil {
		return err
	}

	feed := &ui.Feed{}

	reader, err := watch(ctx, cluster, feed)
	if err != nil {
		return err
	}

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("serve the status page: %w; select another --port", err)
	}

	site := ui.NewSite(ui.Options{Cluster: cluster.Config.Host, Reader: reader, Feed: feed}, listener.Addr())

	o.Printf("The status page is at %s", site.URL())
	o.Printf("Press Ctrl-C to stop.")

	return site.Serve(ctx, listener)
}

// watch returns a reader of the cluster whose provider resources are in a cache, and makes the feed report their
// changes until the context ends.
func watch(ctx context.Context, cluster *cli.Cluster, feed *ui.Feed) (*ui.Cluster, error) {
	cli.SilenceLibraries() // the pages show problems

	config := rest.CopyConfig(cluster.Config)
	config.Timeout = 0 // a watch has no end

	options := cache.Options{
		Scheme:           cluster.Client.Scheme(),
		Mapper:           cluster.Client.RESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		// The page shows that the cluster does not answer: see Check.
		DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) {},
	}
	if cluster.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{cluster.Namespace: {}}
	}

	providers, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("watch the providers: %w", err)
	}

	// It ends with the context.
	go func() { _ = providers.Start(ctx) }()

	syncing, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()

	if err := ui.Watch(syncing, providers, feed); err != nil {
		return nil, err
	}

	if !providers.WaitForCacheSync(syncing) {
		return nil, fmt.Errorf("the providers could not be read within %s: may you list and watch them?", syncTimeout)
	}

	go feed.Check(ctx, cluster.Client, cluster.Namespace)

	return &ui.Cluster{Reader: cluster.Facts(), Cache: providers}, nil
}
