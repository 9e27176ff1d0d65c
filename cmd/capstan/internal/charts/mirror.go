package charts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/mirror"
	"github.com/capstan-project/capstan/chartgen/mirror/certmanager"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// mirrorOptions are the flags of `mirror`.
type mirrorOptions struct {
	*cli.Options

	access *accessFlags
	charts *chartFlags
	output *cli.OutputFlags

	to          string
	files       string
	archive     string
	certManager string
	images      []string
	platforms   []string
	chartsOnly  bool
	dryRun      bool
	overwrite   bool
	parallel    int
}

// NewMirrorCommand returns `capstan mirror`.
func NewMirrorCommand(options *cli.Options) *cobra.Command {
	o := &mirrorOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "mirror PROVIDER[:VERSION]... {--to TARGET | --files DIR}",
		Short: "Copy charts and images of providers to a registry or an archive",
		Long: `An archive can be copied to a registry later, for clusters without internet
access. What exists in the target is not copied again, so you can continue an
interrupted copy. At the end, the command prints how to make the operator
use the mirror.

PROVIDER is named as for "capstan providers"; without VERSION it is the newest
one. A folder, an archive or an address can be given instead, as for "capstan
lint". Providers can also come from a file of resources (--filename) or from the
cluster (--installed).

With --files, the components, metadata, cluster templates and ClusterClasses
become a local repository of clusterctl, from which it generates clusters.
Charts from a registry or the cluster have everything but the components.`,
		Example: `  capstan mirror cluster-api:v1.13.5 infrastructure-aws --to mirror.tar
  capstan mirror --archive mirror.tar --to oci://registry.example.com/capi
  capstan mirror -f providers.yaml --to oci://registry.example.com --dry-run
  capstan mirror infrastructure-aws:v2.11.1 --files providers`,
		Args: o.checkArguments,
		RunE: cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.access = addAccessFlags(flags)
	o.charts = addChartFlags(flags, o.Warnf)
	o.output = cli.AddOutputFlags(flags)
	flags.StringVar(&o.to, "to", "", "Where to copy to: oci://REGISTRY[/PATH] or ARCHIVE.tar.")
	flags.StringVar(&o.files, "files", "", "Folder for the providers' files, in clusterctl's local-repository layout.")
	flags.StringVar(&o.archive, "archive", "", "Copy the content of this archive, and nothing else.")
	flags.StringArrayVar(&o.images, "image", nil,
		"Additional image to copy, with http:// from a registry without TLS; can be repeated.")
	flags.StringVar(
		&o.certManager,
		"cert-manager",
		"",
		"Version of cert-manager to copy as well, such as "+certmanager.Version+"; or its chart, as "+
			"oci://REGISTRY/PATH:VERSION.",
	)
	flags.StringSliceVar(&o.platforms, "platform", nil, "Platforms of images to copy, such as linux/amd64. Default: all.")
	flags.BoolVar(&o.chartsOnly, "charts-only", false, "Do not copy the images.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only list what would be copied, with sizes.")
	flags.BoolVar(&o.overwrite, "overwrite", false,
		"Replace tags of images that exist with other content. Charts are never overwritten.")
	flags.IntVar(&o.parallel, "parallel", 4, "Number of charts and images to look up and copy at once.")

	return cmd
}

// checkArguments refuses what would be ignored, and targets that look like registries and are none.
func (o *mirrorOptions) checkArguments(cmd *cobra.Command, args []string) error {
	switch {
	case o.to == "" && o.files == "" && !o.dryRun:
		return errors.New("--to is missing; set it to a registry, such as oci://registry.example.com/path, " +
			"or an archive, such as mirror.tar")
	case !isReference(o.to) && strings.Contains(o.to, "://"):
		return fmt.Errorf("--to %s has an unknown scheme; write oci://REGISTRY/PATH, http://REGISTRY/PATH for a registry "+
			"without TLS, or the name of an archive", o.to)
	case o.archive != "" && len(args) > 0:
		return fmt.Errorf("%s; leave out %s", wholeArchive, strings.Join(args, ", "))
	}

	for _, c := range []struct {
		applies bool
		why     string
		ignored []string
	}{
		{o.archive != "", wholeArchive, []string{
			"filename", "installed", "source", "config", "files", "image", "cert-manager", "platform", "charts-only",
		}},
		{o.dryRun, "--dry-run writes nothing", []string{"files"}},
		{o.to == "" && o.files != "", "--files copies neither charts nor images without --to", []string{
			"image", "cert-manager", "platform", "charts-only", "parallel",
		}},
		{!isReference(o.to), "there is no registry to copy to", []string{"overwrite"}},
		{o.charts.folder != "", "--source is where all releases come from", []string{"config"}},
	} {
		ignored := slices.DeleteFunc(c.ignored, func(name string) bool { return !cmd.Flags().Changed(name) })
		if c.applies && len(ignored) > 0 {
			return fmt.Errorf("%s; leave out --%s", c.why, strings.Join(ignored, ", --"))
		}
	}

	if isReference(o.to) {
		_, err := oci.ParseRepository(o.to)
		return err
	}

	return nil
}

// wholeArchive is why --archive excludes what selects content.
const wholeArchive = "--archive copies everything that the archive contains, and nothing else"

func (o *mirrorOptions) run(ctx context.Context, args []string) error {
	printer, err := o.output.Printer(o.Out)
	if err != nil {
		return err
	}

	client, err := o.access.Client()
	if err != nil {
		return err
	}

	releases, err := o.charts.load(ctx, client, args)
	if err != nil {
		return err
	}

	if o.files != "" {
		if len(releases) == 0 {
			return errNothing
		}

		if err := o.writeFiles(releases); err != nil || o.to == "" {
			return err
		}
	}

	items, err := o.items(ctx, client, releases)
	if err != nil {
		return err
	}

	if len(items) == 0 {
		return errNothing
	}

	if o.dryRun {
		return printItems(printer, items)
	}

	if isReference(o.to) {
		return o.copyToRegistry(ctx, client, items)
	}

	return o.copyToArchive(ctx, items)
}

// errNothing says how to select what is copied.
var errNothing = errors.New("there is nothing to copy; name providers, or set --filename, --installed, --archive or " +
	"--image")

// items returns everything to copy, charts first.
func (o *mirrorOptions) items(ctx context.Context, client *oci.Client, releases []*published) ([]*mirror.Item, error) {
	if o.archive != "" {
		items, err := mirror.OpenArchive(ctx, o.archive)
		return items, cli.FileError(err)
	}

	items := make([]*mirror.Item, 0, len(releases))
	names := slices.Clone(o.images)

	for _, r := range releases {
		item, err := mirror.NewChart(ctx, r.built)
		if err != nil {
			return nil, err
		}

		items = append(items, item)

		if o.chartsOnly {
			continue
		}

		rebuilt, err := chartgen.Rebuild(r.built) // without templates of others, which could take any time
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.built.Filename(), err)
		}

		images, err := render.Images(rebuilt)
		if err != nil {
			return nil, err
		}

		names = append(names, images...)
	}

	if o.certManager != "" {
		reference, err := certmanager.ParseChart(o.certManager)
		if err != nil {
			return nil, fmt.Errorf("--cert-manager: %w", err)
		}

		found, err := mirror.PublishedChart(ctx, client, reference)
		if err != nil {
			return nil, err
		}

		items = append(items, found...)

		if !o.chartsOnly {
			names = append(names, certmanager.Images(reference)...)
		}
	}

	slices.Sort(names)

	images, err := mirror.Images(ctx, client, slices.Compact(names), o.platforms, o.parallel)

	return append(items, images...), err
}

func (o *mirrorOptions) copyToArchive(ctx context.Context, items []*mirror.Item) error {
	archive, err := mirror.CreateArchive(o.to)
	if err != nil {
		return err
	}

	if err := copyToMirror(ctx, o.ErrOut, items, archive, o.parallel); err != nil {
		return fmt.Errorf("%w\nwhat was copied is kept; run the same command again to continue", err)
	}

	if err := archive.Close(); err != nil {
		return err
	}

	o.Printf("%s contains %s. To copy it to a registry, run `capstan mirror --archive %s --to oci://REGISTRY/PATH`.",
		o.to, summary(items), o.to)

	return nil
}

func (o *mirrorOptions) copyToRegistry(ctx context.Context, client *oci.Client, items []*mirror.Item) error {
	base, err := oci.ParseRepository(o.to)
	if err != nil {
		return err
	}

	target := &mirror.Registry{Client: client, Base: base, Overwrite: o.overwrite}
	if err := copyToMirror(ctx, o.ErrOut, items, target, o.parallel); err != nil {
		return fmt.Errorf("%w\nrun the same command again to continue", err)
	}

	o.printUse(target, items)

	if install := certmanager.InstallCommand(target, items); install != "" {
		o.Printf("Install cert-manager with:")
		o.Printf("  %s", install)
	}

	return nil
}

// printUse prints the commands that make the operator use the mirror: a new one, and one that Helm has installed.
func (o *mirrorOptions) printUse(target *mirror.Registry, items []*mirror.Item) {
	var initFlags, values string

	use := func(flag, value string) {
		initFlags += " --" + flag + " " + value
		values += " --set flags." + flag + "=" + value
	}

	charts, images := count(items)
	if charts > 0 {
		use("chart-repository", target.ChartRepository())
	}

	if images > 0 {
		use("image-registry", target.ImageRegistry())
	}

	o.Printf("%s contains %s. For a new management cluster:", o.to, summary(items))
	o.Printf("  capstan init%s", initFlags)
	o.Printf("For an operator that Helm has installed, with its CHART:")
	o.Printf("  helm upgrade capstan CHART --namespace capstan-system --reset-then-reuse-values%s", values)
	o.Printf("If the registry requires credentials or has its own CA, the flags registry-config and registry-ca name " +
		"files with them.")
}

// copyToMirror copies items to a mirror, up to a number of them at the same time, and shows the progress.
func copyToMirror(ctx context.Context, out io.Writer, items []*mirror.Item, target mirror.Target, parallel int) error {
	progress := newProgress(out, items)
	defer progress.end()

	return mirror.Copy(ctx, items, target, mirror.Options{
		Parallel: parallel, Progress: progress.advance, Finished: progress.finish,
	})
}
