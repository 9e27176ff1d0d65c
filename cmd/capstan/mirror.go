package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/chartgen/supply/mirror"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// mirrorOptions are the flags of `mirror`.
type mirrorOptions struct {
	registry  registryFlags
	providers mirroredProviders

	to, archive, certManager string
	images, platforms        []string
	noImages                 bool
	dryRun, overwrite        bool
	parallel                 int
}

func mirrorCommand() *cobra.Command {
	o := &mirrorOptions{}
	cmd := &cobra.Command{
		Use:   "mirror PROVIDER[:VERSION]... --to oci://REGISTRY[/PATH]|ARCHIVE.tar",
		Short: "Copy what providers need to a registry or an archive, for use without internet",
		Long: `Copy the charts of providers and the container images that they run to a registry of one's own, or to one archive and later from that
to a registry. What is there already is not copied again, and an interrupted copy goes on where it stopped.

PROVIDER is named as in ` + "`capstan versions`" + `; without VERSION the newest is taken. The providers may also come from a file of resources, as
kubectl apply takes it, or from a cluster, whose charts are taken as they are in use.

An archive is an OCI image layout in a tar file: oras, crane and skopeo read it as well. At the end the command prints the flags with
which the operator uses the mirror.`,
		Example: `  capstan mirror cluster-api:v1.13.5 infrastructure-aws --to mirror.tar --platform linux/amd64
  capstan mirror --archive mirror.tar --to oci://registry.example.com/capi
  capstan mirror --file providers.yaml --to oci://registry.example.com/capi --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.providers.named = args
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	o.registry.bind(flags)
	o.providers.bind(flags)
	flags.StringVar(&o.to, "to", "", "the registry, or the archive to write")
	flags.StringVar(&o.archive, "archive", "", "copy what this archive holds, and nothing else")
	flags.StringArrayVar(&o.images, "image", nil, "one more image to copy; may be repeated")
	flags.StringVar(
		&o.certManager,
		"cert-manager",
		"",
		"copy cert-manager's chart and images of this version too, such as v1.21.2; or from a registry of one's own, as oci://REGISTRY/PATH/charts/cert-manager:v1.21.2",
	)
	flags.StringSliceVar(
		&o.platforms,
		"platform",
		nil,
		"take only these platforms of images, such as linux/amd64,linux/arm64 (default: all)",
	)
	flags.BoolVar(&o.noImages, "charts-only", false, "leave out the images")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only list what would be copied, with sizes")
	flags.BoolVar(
		&o.overwrite,
		"overwrite",
		false,
		"let the tags of images in the registry move; those of charts never do",
	)
	flags.IntVar(&o.parallel, "parallel", 4, "how many charts and images are copied at a time")

	return cmd
}

func (o *mirrorOptions) run(ctx context.Context, in io.Reader, out, progress io.Writer) error {
	if o.to == "" && !o.dryRun {
		return errors.New("--to is missing: name a registry as oci://registry.example.com/path, or an archive as mirror.tar")
	}

	host := ""

	if isReference(o.to) {
		base, err := oci.ParseRepository(o.to)
		if err != nil {
			return err
		}

		host = base.Registry
	}

	client, err := o.registry.client(host, in)
	if err != nil {
		return err
	}

	items, err := o.items(ctx, client)
	if err != nil {
		return err
	}

	if len(items) == 0 {
		return errors.New("nothing to copy: name providers, or give --file, --cluster, --archive or --image")
	}

	if o.dryRun {
		return list(out, items)
	}

	return o.copy(ctx, client, items, out, progress)
}

// items are all that is to be copied, charts first.
func (o *mirrorOptions) items(ctx context.Context, client *oci.Client) ([]*mirror.Item, error) {
	if o.archive != "" {
		return mirror.OpenArchive(ctx, o.archive)
	}

	charts, err := o.providers.charts(ctx)
	if err != nil {
		return nil, err
	}

	items := make([]*mirror.Item, 0, len(charts))
	for _, c := range charts {
		item, err := mirror.NewChart(ctx, c)
		if err != nil {
			return nil, err
		}

		items = append(items, item)
	}

	names := slices.Clone(o.images)
	if o.certManager != "" {
		ref, err := parseCertManager(o.certManager)
		if err != nil {
			return nil, err
		}

		names = append(names, certManagerImageNames(ref)...)

		found, err := mirror.PublishedChart(ctx, client, ref)
		if err != nil {
			return nil, err
		}

		items = append(items, found...)
	}

	if o.noImages {
		names = o.images
	} else if names, err = withImagesOf(charts, names); err != nil {
		return nil, err
	}

	copied, err := mirror.Images(ctx, client, names, o.platforms)

	return append(items, copied...), err
}

// withImagesOf adds the images of charts to names, sorted.
func withImagesOf(charts []*chart.Chart, names []string) ([]string, error) {
	for _, c := range charts {
		images, err := render.Images(c, nil)
		if err != nil {
			return nil, err
		}

		names = append(names, images...)
	}

	slices.Sort(names)

	return slices.Compact(names), nil
}

func (o *mirrorOptions) copy(
	ctx context.Context,
	client *oci.Client,
	items []*mirror.Item,
	out, progress io.Writer,
) error {
	observer := newProgress(progress, items)

	options := mirror.Options{Parallel: o.parallel, Observer: observer}
	if !isReference(o.to) {
		archive, err := mirror.CreateArchive(o.to)
		if err != nil {
			return err
		}

		err = mirror.Copy(ctx, items, archive, options)

		observer.end()

		if err != nil {
			return fmt.Errorf("%w\nwhat was copied is kept; the same command goes on from here", err)
		}

		if err := archive.Close(ctx); err != nil {
			return err
		}

		fmt.Fprintf(
			out,
			"%s holds %s. Carry it over, and there run:\n  capstan mirror --archive %s --to oci://REGISTRY/PATH\n",
			o.to,
			counted(items),
			o.to,
		)

		return nil
	}

	base, err := oci.ParseRepository(o.to)
	if err != nil {
		return err
	}

	target := &mirror.Registry{Client: client, Base: base, Overwrite: o.overwrite}
	err = mirror.Copy(ctx, items, target, options)

	observer.end()

	if err != nil {
		return fmt.Errorf("%w\nthe same command goes on from here", err)
	}

	fmt.Fprintf(
		out,
		"%s holds %s. Start the operator with:\n  --chart-repository=%s\n  --image-registry=%s\n",
		o.to,
		counted(items),
		target.ChartRepository(),
		target.ImageRegistry(),
	)
	fmt.Fprintln(
		out,
		"and, where the registry asks for them, with a docker configuration and the certificate of its authority in files:\n  --registry-config=FILE\n  --registry-ca=FILE",
	)
	tellCertManager(out, target, items)

	return nil
}

// list prints items with their sizes.
func list(out io.Writer, items []*mirror.Item) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "SIZE\tNAME\tNOTE")

	for _, item := range items {
		fmt.Fprintln(w, strings.TrimRight(binarySize(item.Size)+"\t"+item.Name+"\t"+item.Note, "\t"))
	}

	fmt.Fprintf(w, "%s\tin all, what is shared counted once\n", binarySize(mirror.TotalSize(items)))

	return w.Flush()
}

func counted(items []*mirror.Item) string {
	charts, attached := 0, 0

	for _, item := range items {
		switch {
		case item.IsAttached():
			attached++
		case item.IsChart():
			charts++
		}
	}

	text := fmt.Sprintf("%s and %s", plural(charts, "chart"), plural(len(items)-charts-attached, "image"))
	if attached > 0 {
		text += " with " + plural(attached, "attached artifact")
	}

	return text
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}

	return fmt.Sprintf("%d %s", n, noun)
}

// binarySize is a number of bytes for people.
func binarySize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}

	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
