package clusters

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/upgradeplan"
	"github.com/capstan-project/capstan/ui"
)

// loopback is the address that the page is served at.
const loopback = "127.0.0.1"

// uiOptions are the flags of `ui`.
type uiOptions struct {
	*cli.Options

	cluster *cli.ClusterFlags
	planner *cli.PlannerFlags
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
	o.planner = cli.AddPlannerFlags(flags)
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

	view, err := watch(ctx, cluster, feed)
	if err != nil {
		return err
	}

	planner, err := o.planner.Planner(ctx, o.Options, cluster)
	if err != nil {
		return err
	}
	defer planner.Close()

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("serve the status page: %w; select another --port", err)
	}

	access := ui.NewLocal(view)
	handler := ui.NewHandler(ui.Options{
		Base: access.Base(), Cluster: cluster.Config.Host, Access: access, Feed: feed,
		Offers:   ui.NewOffers(ctx, readVersions(planner), feed),
		Usages:   ui.NewUsages(ctx, view.Usage, feed),
		Previews: ui.NewPreviews(ctx, readPreview(planner, view.Reader), feed),
	})

	o.Printf("The status page is at http://%s%s", listener.Addr(), access.Base())
	o.Printf("Press Ctrl-C to stop.")

	return ui.Serve(ctx, listener, access.Guard(listener.Addr(), handler))
}

// readVersions returns what asks the sources of providers, as upgrade plan does.
func readVersions(planner *cli.Planner) ui.ReadVersions {
	return func(ctx context.Context, p v1alpha2.Provider) ([]upgradeplan.Version, error) {
		found, err := planner.Versions(ctx, p)

		versions := make([]upgradeplan.Version, 0, len(found))
		for _, v := range found {
			versions = append(versions, upgradeplan.Version(v))
		}

		return versions, err
	}
}

// readPreview returns what computes the changes of an upgrade, as diff does.
func readPreview(planner *cli.Planner, reader *facts.Reader) ui.ReadPreview {
	return func(ctx context.Context, p v1alpha2.Provider) (facts.Comparison, error) {
		planned, err := planner.Plan(ctx, p)
		if err != nil {
			return facts.Comparison{}, err
		}

		report, err := planner.CheckCRDs(ctx, p, planned)
		if err != nil {
			return facts.Comparison{}, fmt.Errorf("check the changes of CRDs: %w", err)
		}

		return reader.CompareUpgrade(ctx, p, planned, report)
	}
}
