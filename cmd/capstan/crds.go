package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/crds"
)

// crdsOptions is what `crds` works with.
type crdsOptions struct {
	management *management
	screen     *screen
}

func crdsCommand() *cobra.Command {
	o := &crdsOptions{}
	cmd := &cobra.Command{
		Use:   "crds",
		Short: "List the CRDs of all providers, and how they are looked after",
		Long: `List the CustomResourceDefinitions of all providers in the cluster: whose they are, which versions are served, which of them objects
are or may be stored in, and how many objects there are.

Managed ones are applied by Capstan. Orphaned ones were, for a provider that is gone or that no longer brings them; they and their
objects stay until somebody deletes them. Unmanaged ones are somebody else's to apply.`,
		Example: `  capstan crds
  capstan crds -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	o.management = managementFlags(cmd.Flags())
	o.screen = screenFlags(cmd.Flags(), "json", "yaml")
	cmd.AddCommand(crdsCheckCommand())

	return cmd
}

func (o *crdsOptions) run(ctx context.Context, out io.Writer) error {
	if err := o.screen.open(out); err != nil {
		return err
	}

	if err := o.management.connect(); err != nil {
		return err
	}

	entries, err := o.management.crds(ctx)
	if err != nil {
		return err
	}

	if printed, err := o.screen.data(entries); printed || err != nil {
		return err
	}

	if len(entries) == 0 {
		_, err := fmt.Fprintln(o.screen, "There are no CustomResourceDefinitions of providers.")
		return err
	}

	drawCRDs(o.screen, entries)

	return nil
}

// crds lists the CRDs of providers: of all, or of those in the namespace that was named.
func (m *management) crds(ctx context.Context) ([]crds.Item, error) {
	providers, err := m.providersIn(ctx, "")
	if err != nil {
		return nil, err
	}

	scheme := runtime.NewScheme()
	if err := crds.AddToScheme(scheme); err != nil {
		return nil, err
	}

	definitions, err := client.New(m.config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the management cluster: %w", err)
	}

	objects, err := metadata.NewForConfig(m.config)
	if err != nil {
		return nil, fmt.Errorf("reach the management cluster: %w", err)
	}

	entries, err := crds.Inventory(ctx, definitions, objects, providers)

	return slices.DeleteFunc(
		entries,
		func(e crds.Item) bool { return m.namespace() != "" && e.Namespace != m.namespace() },
	), err
}

func drawCRDs(s *screen, entries []crds.Item) {
	rows := make([][]string, 0, 1+len(entries))
	rows = append(rows, []string{"PROVIDER", "VERSION", "CRD", "SERVED", "STORED", "OBJECTS", "STATE"})

	for _, e := range entries {
		objects, state := "?", string(e.State)
		if e.Objects != nil {
			objects = strconv.FormatInt(*e.Objects, 10)
		}

		if e.Progress != nil {
			state = fmt.Sprintf("%s %d/%d", e.State, e.Progress.Done, e.Progress.Total)
		}

		version := e.Version
		if version == "" {
			version = "-"
		}

		rows = append(rows, []string{e.Provider, version, e.Name, strings.Join(e.Served, ","), stored(e), objects, state})
	}

	s.table(rows, func(row, column int) style {
		if row > 0 && column == len(rows[0])-1 && entries[row-1].State != crds.Managed {
			return yellow
		}

		return plain
	})
}

// stored are the versions that objects may be stored in, the storage version marked.
func stored(e crds.Item) string {
	versions := slices.Clone(e.Stored)
	for i, v := range versions {
		if v == e.Storage {
			versions[i] = v + "*"
		}
	}

	return strings.Join(versions, ",")
}
