package charts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// newOptions are the flags of `chart new`.
type newOptions struct {
	*cli.Options

	folder, version, image string
}

func newNewCommand(options *cli.Options) *cobra.Command {
	o := &newOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "new TYPE-NAME",
		Short: "Write the first version of a new provider",
		Long: `Write the files of the first version of a new provider to a folder in clusterctl's local-repository layout,
such as infrastructure-example/v0.1.0: its components with the kinds that the contract of Cluster API requires, the
permissions and the Deployment of its manager, and its metadata. They conform to the contract, and can be built and
installed as they are; the manager's program is yours to write.

Outside of the GitHub organization kubernetes-sigs, begin the name with that of your organization, such as
infrastructure-acme-example. clusterctl requires that of the providers in its list, so that names are unique.`,
		Example: `  capstan chart new infrastructure-example
  capstan chart new infrastructure-example --version v0.2.0 --image registry.example.com/example-controller:v0.2.0`,
		Args: cli.Arguments(1, 1, "the label of a provider, such as infrastructure-example"),
		RunE: cli.Run(o.run),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.folder, "destination", "d", ".", "Folder in which the provider's folder is created.")
	flags.StringVar(&o.version, "version", "v0.1.0", "Version of the provider.")
	flags.StringVar(&o.image, "image", "",
		"Image of the provider's manager. Default: registry.example.com/TYPE-NAME-controller:VERSION.")

	return cmd
}

// providerName matches names that the provider's objects and kinds can have in theirs.
var providerName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

func (o *newOptions) run(_ context.Context, args []string) error {
	label := args[0]
	providerType, name := v1alpha2.ParseLabel(label)

	if providerType == v1alpha2.CoreProviderType || len(name) > 30 || !providerName.MatchString(name) {
		return fmt.Errorf("%s: expected the type and a name of at most 30 lower-case letters, digits and hyphens, such as "+
			"infrastructure-example", label)
	}

	version := "v" + strings.TrimPrefix(o.version, "v")
	image := cmp.Or(o.image, fmt.Sprintf("registry.example.com/%s-controller:%s", label, version))

	files, err := scaffold(newProvider{Type: providerType, Name: name, Version: version, Image: image})
	if err != nil {
		return err
	}

	folder := filepath.Join(o.folder, label, version)

	// Nothing of an existing version is overwritten.
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}

	if err := os.Mkdir(folder, 0o755); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists, and is left as it is; choose another --version or --destination", folder)
	} else if err != nil {
		return err
	}

	for _, f := range files {
		path := filepath.Join(folder, f.Name)
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return err
		}

		o.Printf("%s", path)
	}

	return nil
}
