package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	providerplan "github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// diffOptions are the flags of `diff`.
type diffOptions struct {
	management    *management
	screen        *screen
	file, version string
	revision      int
	contextLines  int
	exitCode      bool
}

func diffCommand() *cobra.Command {
	o := &diffOptions{}

	const usage = "diff PROVIDER | diff -f FILE"

	cmd := &cobra.Command{
		Use:   usage,
		Short: "Show what would change if a provider's resource were applied now",
		Long: `Show what would change in the objects of a provider's release if its resource were applied now: as it is in the cluster, in another
--version, or as a file has it. With --revision, show what a return to that revision would change. Nothing is changed.

The values of Secrets are not shown, and CRDs that would change are only named. The exit code is 0, or with --exit-code 2 if there are
changes; errors give 1.`,
		Example: `  capstan diff infrastructure-aws
  capstan diff infrastructure-aws --version v2.11.1
  capstan diff infrastructure-aws --revision 3
  capstan diff -f aws.yaml --exit-code`,
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 1) == (o.file != "") || len(args) > 1 {
				return errors.New("give either a provider or the file of its resource: capstan " + usage)
			}

			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(o.screen.open(cmd.OutOrStdout()), o.management.connect()); err != nil {
				return err
			}

			return o.run(cmd.Context(), args, cmd.ErrOrStderr())
		},
	}
	o.management = managementFlags(cmd.Flags())
	o.screen = screenFlags(cmd.Flags(), "json", "yaml")
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "a file with the resource as it may become; - is standard input")
	flags.StringVar(&o.version, "version", "", "look at this version instead of spec.version")
	flags.IntVar(&o.revision, "revision", 0, "look at this revision of the release instead")
	flags.IntVarP(&o.contextLines, "unified", "U", 3, "how many unchanged lines to show around changes")
	flags.BoolVar(&o.exitCode, "exit-code", false, "exit with 2 if there are changes")
	cmd.MarkFlagsMutuallyExclusive("version", "revision")
	cmd.MarkFlagsMutuallyExclusive("filename", "revision")

	return cmd
}

func (o *diffOptions) run(ctx context.Context, args []string, warnings io.Writer) error {
	p, err := o.provider(ctx, args)
	if err != nil {
		return err
	}

	d, err := o.compare(ctx, p, warnings)
	if err != nil {
		return err
	}

	if err := o.print(d); err != nil {
		return err
	}

	if o.exitCode && !d.none() {
		return errChanges
	}

	return nil
}

// provider is the resource to look at.
func (o *diffOptions) provider(ctx context.Context, args []string) (v1alpha2.Provider, error) {
	if o.file == "" {
		p, err := o.management.find(ctx, args[0])
		if err == nil && o.version != "" {
			p.GetSpec().Version = o.version
		}

		return p, err
	}

	given, err := readProvider(o.file, o.management.namespace())
	if err != nil {
		return nil, err
	}
	// What only the cluster knows of it, such as the version that it is pinned to, goes with it.
	all, err := o.management.providers(ctx)
	if err != nil {
		return nil, err
	}

	for _, p := range all {
		if nameOf(p) == nameOf(given) {
			given.SetResourceVersion(p.GetResourceVersion())
			given.SetUID(p.GetUID())
			p.GetStatus().DeepCopyInto(given.GetStatus())
		}
	}

	if o.version != "" {
		given.GetSpec().Version = o.version
	}

	return given, nil
}

// readProvider reads a provider's resource from a file.
func readProvider(file, namespace string) (v1alpha2.Provider, error) {
	data, err := os.ReadFile(file)
	if file == "-" {
		data, err = io.ReadAll(os.Stdin)
	}

	if err != nil {
		return nil, err
	}

	document := unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &document.Object); err != nil {
		return nil, fmt.Errorf("%s: not one YAML document: %w", file, err)
	}

	p := v1alpha2.ProviderType(document.GetKind()).New()
	if p == nil || document.GetAPIVersion() != v1alpha2.GroupVersion.String() {
		return nil, fmt.Errorf("%s: holds %s of %s; give the resource of a provider, such as an InfrastructureProvider of %s",
			file, cmp.Or(document.GetKind(), "no kind"), cmp.Or(document.GetAPIVersion(), "no API"), v1alpha2.GroupVersion)
	}

	if err := yaml.UnmarshalStrict(data, p); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}

	p.SetNamespace(cmp.Or(p.GetNamespace(), namespace))

	if p.GetNamespace() == "" || p.GetName() == "" {
		return nil, fmt.Errorf(
			"%s: the resource has no name, or no namespace; write them into metadata, or give the --namespace",
			file,
		)
	}

	return p, nil
}

// compare looks at the release as it is, and as it would be.
func (o *diffOptions) compare(ctx context.Context, p v1alpha2.Provider, warnings io.Writer) (*difference, error) {
	observed, err := o.management.releases.Observe(ctx, p.GetNamespace(), v1alpha2.ReleaseName(p))
	if err != nil {
		return nil, err
	}

	current := &release.Record{}
	if newest, exists := observed.Newest(); exists {
		if current, err = o.management.releases.Read(ctx, observed.Namespace, observed.Name, newest); err != nil {
			return nil, err
		}
	}

	preview, err := o.preview(ctx, p, observed, warnings)
	if err != nil {
		return nil, err
	}

	for _, w := range preview.Warnings {
		fmt.Fprintln(warnings, "Warning:", w)
	}

	changes, err := compareObjects(current.Objects, preview.Rendered.Objects, o.contextLines)

	return &difference{
		Provider: v1alpha2.Label(p), From: current.AppVersion, To: preview.Version,
		Objects: changes, NewCRDs: preview.NewCRDs, ChangedCRDs: preview.ChangedCRDs,
	}, err
}

// preview is what would be installed: the revision that a flag or the resource names, or what the
// rest of the resource asks for.
func (o *diffOptions) preview(
	ctx context.Context,
	p v1alpha2.Provider,
	observed state.History,
	warnings io.Writer,
) (*providerplan.Preview, error) {
	number := o.revision
	if held := p.GetSpec().Release; number == 0 && held != nil && held.RollbackTo != nil {
		number = int(*held.RollbackTo)
		fmt.Fprintf(warnings, "Warning: spec.release.rollbackTo is %d, so that nothing else is installed\n", number)
	}

	if number == 0 {
		previewer, err := o.management.preview()
		if err != nil {
			return nil, err
		}

		return previewer.Preview(ctx, p)
	}

	revision, err := findRevision(observed, number)
	if err != nil {
		return nil, err
	}

	record, err := o.management.releases.Read(ctx, observed.Namespace, observed.Name, revision)
	if err != nil {
		return nil, err
	}

	return &providerplan.Preview{Plan: providerplan.Plan{Version: record.AppVersion}, Rendered: record}, nil // a return leaves CRDs as they are
}

func (o *diffOptions) print(d *difference) error {
	if done, err := o.screen.data(d); done {
		return err
	}

	s := o.screen
	for _, c := range d.Objects {
		fmt.Fprintln(s, s.paint(yellow, fmt.Sprintf("%s would be %s:", c.Object, c.Change)))

		for line := range strings.Lines(c.Diff) {
			st := plain

			switch line[0] {
			case '+':
				st = green
			case '-':
				st = red
			case '@':
				st = cyan
			}

			fmt.Fprintln(s, s.paint(st, strings.TrimSuffix(line, "\n")))
		}

		fmt.Fprintln(s)
	}

	for _, crd := range d.NewCRDs {
		fmt.Fprintln(s, s.paint(yellow, fmt.Sprintf("CustomResourceDefinition %s would be created", crd)))
	}

	for _, crd := range d.ChangedCRDs {
		fmt.Fprintln(s, s.paint(yellow, fmt.Sprintf("CustomResourceDefinition %s would be applied anew", crd)))
	}

	fmt.Fprintln(s, d.summary())

	return nil
}
