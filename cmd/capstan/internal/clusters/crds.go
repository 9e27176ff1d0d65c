package clusters

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/metadata"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/crds"
)

// crdsOptions are the flags of `crds`.
type crdsOptions struct {
	*cli.Options

	cluster *cli.ClusterFlags
	output  *cli.OutputFlags
}

// NewCRDsCommand returns `capstan crds`.
func NewCRDsCommand(options *cli.Options) *cobra.Command {
	o := &crdsOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "crds",
		Short: "List the CRDs of providers and how they are managed",
		Long: `List the CustomResourceDefinitions of providers in the cluster: the provider that each belongs to,
the versions that are served and those that objects can be stored in, and the number of objects. The
storage version is marked with an asterisk.

Managed CRDs are applied by Capstan. Orphaned ones were applied for a provider that was removed, or
that does not contain them any more; they and their objects are kept until you delete them.
Unmanaged ones are not applied by Capstan.`,
		Example: `  capstan crds
  capstan crds -o json`,
		Args: cli.Arguments(0, 0, "no arguments"),
		RunE: cli.Run(o.run),
	}
	o.cluster = cli.AddClusterFlags(cmd.Flags())
	o.output = cli.AddOutputFlags(cmd.Flags())
	cmd.AddCommand(newCRDsCheckCommand(options))

	return cmd
}

func (o *crdsOptions) run(ctx context.Context, _ []string) error {
	printer, cluster, err := o.Connect(o.output, o.cluster)
	if err != nil {
		return err
	}

	items, err := readInventory(ctx, cluster)
	if err != nil {
		return err
	}

	return printCRDs(printer, items)
}

// readInventory lists the CRDs of the providers in the namespace of --namespace. CRDs are attributed
// to providers by the resources of the whole cluster.
func readInventory(ctx context.Context, cluster *cli.Cluster) ([]crds.Item, error) {
	providers, err := cluster.ProvidersIn(ctx, "")
	if err != nil {
		return nil, err
	}

	objects, err := metadata.NewForConfig(cluster.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the management cluster: %w", err)
	}

	items, err := crds.Inventory(ctx, cluster.Client, objects, providers)
	if err != nil {
		return nil, err
	}

	var selected []crds.Item

	for _, item := range items {
		if cluster.Namespace == "" || item.Namespace == cluster.Namespace {
			selected = append(selected, item)
		}
	}

	return selected, nil
}

func printCRDs(printer *cli.Printer, items []crds.Item) error {
	return printer.Print(items, func() error {
		if len(items) == 0 {
			printer.Printf("There are no CustomResourceDefinitions of providers.")
			return nil
		}

		rows := make([]cli.Row, 0, len(items))
		for _, item := range items {
			rows = append(rows, crdRow(item))
		}

		header := []string{"PROVIDER", "VERSION", "CRD", "SERVED", "STORED", "OBJECTS", "STATE"}

		return printer.Table(header, rows)
	})
}

func crdRow(item crds.Item) cli.Row {
	objects := "?"
	if item.Objects != nil {
		objects = strconv.FormatInt(*item.Objects, 10)
	}

	state := string(item.State)
	if item.Progress != nil {
		state = fmt.Sprintf("%s %d/%d", item.State, item.Progress.Done, item.Progress.Total)
	}

	row := cli.Row{Cells: []string{
		item.Provider,
		cmp.Or(item.Version, "-"),
		item.Name,
		strings.Join(item.Served, ","),
		storedVersions(item),
		objects,
		state,
	}}
	if item.State != crds.Managed {
		row.Style = cli.Yellow
	}

	return row
}

// storedVersions returns the versions that objects can be stored in, with the storage version marked.
func storedVersions(item crds.Item) string {
	versions := make([]string, 0, len(item.Stored))

	for _, v := range item.Stored {
		if v == item.Storage {
			v += "*"
		}

		versions = append(versions, v)
	}

	return strings.Join(versions, ",")
}
