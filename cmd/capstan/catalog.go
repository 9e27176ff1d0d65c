package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/catalog"
)

// catalogOptions are the flags of commands that look providers up.
type catalogOptions struct {
	config, output string
}

func (o *catalogOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(
		&o.config,
		"config",
		"",
		"a configuration file in clusterctl's format (default: clusterctl's own, if there is one)",
	)
	flags.StringVarP(&o.output, "output", "o", "table", "table, json or yaml")
}

// load reads the catalog, once the flags are known to make sense.
func (o *catalogOptions) load() (*catalog.Catalog, error) {
	switch o.output {
	case "table", "json", "yaml":
	default:
		return nil, fmt.Errorf("--output %s is unknown; choose table, json or yaml", o.output)
	}

	if o.config == "" {
		return catalog.LoadUser()
	}

	return catalog.Load(o.config)
}

// print prints a list as a table, with a line of cells for each element, or as JSON or YAML.
func (o *catalogOptions) print(out io.Writer, list any, header []string, rows [][]string) error {
	var (
		data []byte
		err  error
	)

	switch o.output {
	case "json":
		data, err = json.MarshalIndent(list, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(list)
	default:
		w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
		for _, row := range append([][]string{header}, rows...) {
			fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t"))
		}

		return w.Flush()
	}

	if err != nil {
		return err
	}

	_, err = out.Write(data)

	return err
}

// findEntry finds a provider by its label (infrastructure-aws), by type and name
// (infrastructure/aws), or by a name that only one has.
func findEntry(c *catalog.Catalog, wanted string) (catalog.Entry, error) {
	var named []catalog.Entry

	for _, e := range c.Entries {
		if wanted == e.Label() || wanted == e.Type.Name()+"/"+e.Name || strings.EqualFold(wanted, string(e.Type)+"/"+e.Name) {
			return e, nil
		}

		if e.Name == wanted {
			named = append(named, e)
		}
	}

	if len(named) == 1 {
		return named[0], nil
	}

	labels := make([]string, 0, len(named))
	for _, e := range named {
		labels = append(labels, e.Label())
	}

	if len(labels) > 0 {
		return catalog.Entry{}, fmt.Errorf(
			"several providers are called %s; choose one: %s",
			wanted,
			strings.Join(labels, ", "),
		)
	}

	kind, name := v1alpha2.ParseLabel(wanted)

	return catalog.Entry{}, fmt.Errorf(
		"no %s %s is known; `capstan providers` lists those that are, and a configuration file adds others",
		kind,
		cmp.Or(name, wanted),
	)
}
