package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// ResourceFlags are the flags of commands about a provider's resource in the cluster or in a file.
type ResourceFlags struct {
	Cluster *ClusterFlags
	Planner *PlannerFlags

	filename string
	version  string
}

// AddResourceFlags adds the flags to a command, which takes a provider or the file of its resource.
func AddResourceFlags(cmd *cobra.Command) *ResourceFlags {
	flags := cmd.Flags()
	f := &ResourceFlags{Cluster: AddClusterFlags(flags), Planner: AddPlannerFlags(flags)}
	flags.StringVarP(&f.filename, "filename", "f", "", "File with the resource; - is standard input.")
	flags.StringVar(&f.version, "version", "", "Version to use instead of spec.version.")

	cmd.Args = func(cmd *cobra.Command, args []string) error {
		fromFile := f.filename != ""
		if len(args) > 1 || fromFile == (len(args) == 1) {
			return UsageError(cmd, "either a provider or the file of its resource")
		}

		return nil
	}

	return f
}

// Open returns what a command about a resource works with: its output, the cluster, and the resource that the arguments
// and flags select.
func (f *ResourceFlags) Open(
	ctx context.Context, o *Options, output *OutputFlags, args []string,
) (*Printer, *Cluster, v1alpha2.Provider, error) {
	printer, cluster, err := o.Connect(output, f.Cluster)
	if err != nil {
		return nil, nil, nil, err
	}

	p, err := f.Resource(ctx, o, cluster, args)

	return printer, cluster, p, err
}

// Resource returns the resource that the arguments and flags select.
func (f *ResourceFlags) Resource(
	ctx context.Context, o *Options, cluster *Cluster, args []string,
) (v1alpha2.Provider, error) {
	var (
		p   v1alpha2.Provider
		err error
	)

	if f.filename == "" {
		p, err = cluster.Find(ctx, args[0])
	} else {
		p, err = f.fromFile(ctx, o, cluster)
	}

	if err != nil {
		return nil, err
	}

	if f.version != "" {
		p.GetSpec().Version = f.version
	}

	return p, nil
}

// fromFile returns the resource in the file, with what only the cluster knows of it, such as the
// version that a range was resolved to.
func (f *ResourceFlags) fromFile(ctx context.Context, o *Options, cluster *Cluster) (v1alpha2.Provider, error) {
	p, err := readResource(o.In, f.filename, cluster.Namespace)
	if err != nil {
		return nil, err
	}

	existing, err := cluster.Providers(ctx)
	if err != nil {
		return nil, err
	}

	for _, e := range existing {
		if v1alpha2.FullName(e) == v1alpha2.FullName(p) {
			p.SetResourceVersion(e.GetResourceVersion())
			p.SetUID(e.GetUID())
			e.GetStatus().DeepCopyInto(p.GetStatus())
		}
	}

	return p, nil
}

// Installed returns the newest revision of a provider's release, which is empty if there is none, and
// the history.
func (c *Cluster) Installed(ctx context.Context, p v1alpha2.Provider) (*release.Record, state.History, error) {
	history, err := c.Views().Observe(ctx, p)
	if err != nil {
		return nil, history, err
	}

	newest, exists := history.Newest()
	if !exists {
		return &release.Record{}, history, nil
	}

	record, err := c.Releases.Read(ctx, history.Release, newest)

	return record, history, err
}

// readResource reads a provider's resource from a file, or from in if the file is "-".
func readResource(in io.Reader, file, namespace string) (v1alpha2.Provider, error) {
	read := ReadFile
	if file == "-" {
		read = func(string) ([]byte, error) { return io.ReadAll(in) }
	}

	data, err := read(file)
	if err != nil {
		return nil, err
	}

	document := unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &document.Object); err != nil {
		return nil, fmt.Errorf("%s: not a single YAML document: %s", file, bundle.YAMLReason(err))
	}

	p := v1alpha2.ProviderType(document.GetKind()).New()
	if p == nil || document.GetAPIVersion() != v1alpha2.GroupVersion.String() {
		return nil, fmt.Errorf(
			"%s: contains %s of %s; expected the resource of a provider, such as an InfrastructureProvider of %s",
			file,
			cmp.Or(document.GetKind(), "no kind"),
			cmp.Or(document.GetAPIVersion(), "no API"),
			v1alpha2.GroupVersion,
		)
	}

	if err := yaml.UnmarshalStrict(data, p); err != nil {
		return nil, fmt.Errorf("%s: %s", file, bundle.YAMLReason(err))
	}

	p.SetNamespace(cmp.Or(p.GetNamespace(), namespace))

	if p.GetNamespace() == "" || p.GetName() == "" {
		return nil, fmt.Errorf(
			"%s: the resource has no name or no namespace; add them to its metadata, or set --namespace",
			file,
		)
	}

	return p, nil
}

// IsOlder reports whether a version is older than the installed one of a provider.
func IsOlder(version string, p v1alpha2.Provider) bool {
	installed, err := semver.NewVersion(ptr.Deref(p.GetStatus().InstalledVersion, ""))
	if err != nil { // nothing is installed, or it has no version
		return false
	}

	wanted, err := semver.NewVersion(version)

	return err == nil && wanted.LessThan(installed)
}
