package charts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/contract"
)

// The values of --crds.
const (
	crdsInChart  = "chart"
	crdsSeparate = "separate"
)

// buildOptions are the flags of `chart build`.
type buildOptions struct {
	*cli.Options

	input       *Input
	destination string
	crds        string
	namespace   string
}

func newBuildCommand(options *cli.Options) *cobra.Command {
	o := &buildOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "build {DIR[/VERSION] | CHART.tgz | URL | PROVIDER[:VERSION]}...",
		Short: "Build Helm charts from the components of providers",
		Long: `Each argument is a folder, a chart's archive, an address, or a provider, as for
"capstan lint".

With --crds separate, the CRDs are not in the chart, but in the file
<chart>-<version>-crds.yaml next to it, for kubectl apply --server-side. That is
needed if they make a release too large for Helm, or if the provider is not
installed in its default namespace.`,
		Example: `  capstan chart build providers/infrastructure-aws/v2.11.1 -d charts/
  capstan chart build providers/* -d charts/
  capstan chart build infrastructure-aws:v2.11.1
  capstan chart build out --type infrastructure --name aws --version v2.11.1
  capstan chart build providers/infrastructure-azure --crds separate -n azure`,
		Args: cli.Arguments(1, -1, "folders, archives of charts, addresses or providers"),
		RunE: cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.input = AddInputFlags(flags)
	flags.StringVarP(&o.destination, "destination", "d", ".", "Folder to write to, which is created, or file CHART.tgz.")
	flags.StringVar(&o.crds, "crds", crdsInChart, "Where to put the CRDs: chart, or separate for a file next to it.")
	flags.StringVarP(&o.namespace, "namespace", "n", "",
		"Namespace of the provider, for webhooks of separate CRDs. Default: its own.")

	return cmd
}

func (o *buildOptions) run(ctx context.Context, args []string) error {
	switch {
	case o.crds != crdsInChart && o.crds != crdsSeparate:
		return fmt.Errorf("unknown --crds %q; use %s or %s", o.crds, crdsInChart, crdsSeparate)
	case o.crds == crdsInChart && o.namespace != "":
		return errors.New("--namespace only applies to separate CRDs; add --crds separate")
	case len(args) > 1 && isArchive(o.destination):
		return fmt.Errorf("--destination %s is the file of a single chart; give a folder for several", o.destination)
	}

	if err := o.input.identity.checkArguments(args); err != nil {
		return err
	}

	var failed []error
	for _, argument := range args {
		failed = append(failed, o.build(ctx, argument))
	}

	return errors.Join(failed...)
}

// build builds the chart of what an argument names.
func (o *buildOptions) build(ctx context.Context, argument string) error {
	opened, err := o.input.open(ctx, argument)
	if err != nil {
		return err
	}

	built, err := opened.build()
	if err != nil {
		return err
	}

	file, err := destination(built, o.destination)
	if err != nil {
		return err
	}

	if o.crds == crdsSeparate {
		if err := o.writeCRDs(built, filepath.Dir(file)); err != nil {
			return err
		}

		built.CRDs = nil
	}

	archive, err := built.Archive()
	if err != nil {
		return err
	}

	if err := errors.Join(o.warnOfSize(built, len(archive)), o.warnOfFindings(argument, opened)); err != nil {
		return err
	}

	if err := os.WriteFile(file, archive, 0o644); err != nil {
		return err
	}

	o.Printf("%s\n%s", file, chart.Digest(archive))

	return nil
}

// writeCRDs writes the CRDs of a chart to a file in a folder.
func (o *buildOptions) writeCRDs(c *chart.Chart, folder string) error {
	crds, err := chartgen.JoinCRDs(c, o.namespace)
	if err != nil {
		return err
	}

	file := filepath.Join(folder, strings.TrimSuffix(c.Filename(), ".tgz")+"-crds.yaml")
	if err := os.WriteFile(file, crds, 0o644); err != nil {
		return err
	}

	o.Printf("%s", file)

	return nil
}

// warnOfSize warns if a chart, whose archive has the given size, is too large for the operator, or its release for
// Helm.
func (o *buildOptions) warnOfSize(c *chart.Chart, archive int) error {
	refused := store.CheckSize(c, archive)
	if refused != nil {
		o.Warnf("the operator does not install this chart: %s.", refused)
	}

	sizes, err := render.Oversize(c, archive)

	switch {
	case err != nil || sizes == render.Sizes{}:
		return err
	case sizes.Helm == 0:
		o.Warnf("the operator cannot install %s: its release would have %d KiB, and may have %d KiB; publish fewer or "+
			"smaller objects.", c.Filename(), sizes.Operator>>10, helm.MaxRecord>>10)

		return nil
	}

	fix := "remove cluster templates from the provider's folder"
	if c.CRDs != nil {
		fix = "build it with --crds separate"
	}

	remark := ""

	switch {
	case sizes.Operator > 0:
		fix, remark = "publish fewer or smaller objects", " The operator cannot install it, either."
	case refused == nil:
		remark = " The operator can install it, because its releases have no CRDs and templates."
	}

	o.Warnf("the helm command cannot install %s: its release would have %d KiB, and Kubernetes stores at most %d KiB; "+
		"%s.%s", c.Filename(), sizes.Helm>>10, render.MaxReleaseSize>>10, fix, remark)

	return nil
}

// warnOfFindings warns if what was published breaks the provider contracts.
func (o *buildOptions) warnOfFindings(argument string, p *published) error {
	findings, err := p.lint(o.input.identity)
	if err != nil {
		return err
	}

	if contract.Fail(findings, contract.Warning) {
		conforms := "conforms to the provider contracts, with remarks"
		if contract.Fail(findings, contract.Error) {
			conforms = "does not conform to the provider contracts"
		}

		o.Warnf("%s %s: %s. `capstan lint %s` shows the details.", p.place, conforms, contract.Summary(findings),
			strings.Join(append([]string{argument}, o.input.identity.arguments()...), " "))
	}

	return nil
}
