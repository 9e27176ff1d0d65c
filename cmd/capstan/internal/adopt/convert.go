package adopt

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// maxFile is the largest file with values that is read, in bytes.
const maxFile = 4 << 20

// NewConvertCommand returns `capstan convert`.
func NewConvertCommand(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "convert {FILE | -}",
		Short: "Convert values of cluster-api-operator's chart",
		Long: `Convert a file with values of cluster-api-operator's chart into values of Capstan's chart, and print them: the
same provider resources in the same namespaces, and the settings of the operator that have a counterpart. Warnings
name what has none, unless it is a default of that chart. "-" reads standard input.`,
		Example: `  capstan convert values.yaml
  helm get values capi-operator -n capi-operator-system -o yaml | capstan convert - > cluster.yaml
  helm install capstan oci://ghcr.io/capstan-project/charts/capstan -n capstan-system --create-namespace \
    -f cluster.yaml`,
		Args: cli.Arguments(1, 1, "a file with values"),
		RunE: cli.Run(func(_ context.Context, args []string) error { return run(o, args[0]) }),
	}
}

func run(o *cli.Options, name string) error {
	data, err := read(o.In, name)
	if err != nil {
		return err
	}

	var old map[string]any
	if err := yaml.Unmarshal(data, &old); err != nil {
		return fmt.Errorf("%s is no file with values: %w", name, err)
	}

	c := &converter{warn: o.Warnf}

	converted, err := c.convert(old)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}

	text, err := yaml.Marshal(converted)
	if err != nil {
		return err
	}

	_, err = o.Out.Write(text)

	return err
}

// read reads a file, or the input if its name is "-".
func read(in io.Reader, name string) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()

		in = file
	}

	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %s, which no file with values is", name, cli.Size(maxFile))
	}

	return data, err
}
