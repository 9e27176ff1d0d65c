package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/controllers/crds/safety"
)

// reportFormats are what --output of `crds check` takes.
var reportFormats = []string{"table", "json", "yaml"}

// crdsCheck are the flags of `crds check`.
type crdsCheck struct {
	from, output        string
	kubeconfig, context string
	allow               []string
}

func crdsCheckCommand() *cobra.Command {
	o := &crdsCheck{}
	cmd := &cobra.Command{
		Use:   "check FILE.yaml|FILE.tgz|DIR[/VERSION]",
		Short: "Tell what a provider's CRDs would break in the cluster",
		Long: `Compare the CRDs that a provider publishes with those in the cluster, and try them on the objects that exist, as the operator does
before it applies them. Nothing is changed.

The CRDs come from a file of components, a chart, or a provider's folder in clusterctl's local-repository layout. With --from they
are compared with those of another one, and no cluster is asked; what depends on objects is judged by the rules alone then.

The exit code is 1 if there is an error: something that breaks an object, or that could break one and cannot be tried.`,
		Example: `  capstan crds check providers/infrastructure-aws/v2.11.1
  capstan crds check infrastructure-aws-2.11.1.tgz --from infrastructure-aws-2.10.3.tgz --output yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New(
					"give a file of components, a chart or a provider's folder: capstan crds check FILE.yaml|FILE.tgz|DIR[/VERSION]",
				)
			}

			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.from, "from", "", "compare with the CRDs of this file, chart or folder instead of the cluster's")
	flags.StringVarP(
		&o.output,
		"output",
		"o",
		reportFormats[0],
		"how to print the report: "+strings.Join(reportFormats, ", "),
	)
	flags.StringSliceVar(&o.allow, "allow", nil, "CRDs whose errors are reported as warnings")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the management cluster's kubeconfig; by default kubectl's")
	flags.StringVar(&o.context, "context", "", "the context of the kubeconfig")

	return cmd
}

func (o *crdsCheck) run(ctx context.Context, path string, out io.Writer) error {
	if !slices.Contains(reportFormats, o.output) {
		return fmt.Errorf("--output %s is unknown; choose one of %s", o.output, strings.Join(reportFormats, ", "))
	}

	desired, err := openCRDs(ctx, path)
	if err != nil {
		return err
	}

	in, err := o.input(ctx, desired)
	if err != nil {
		return err
	}

	report, err := safety.Check(ctx, in)
	if err != nil {
		return err
	}

	if err := writeReport(out, o.output, report); err != nil {
		return err
	}

	if report.HasErrors() {
		return fmt.Errorf("%s is not safe to apply: %s", path, report.Summary())
	}

	return nil
}

// input has the CRDs to compare with: another release's, or the cluster's with its objects.
func (o *crdsCheck) input(
	ctx context.Context,
	desired []*apiextensionsv1.CustomResourceDefinition,
) (safety.Input, error) {
	in := safety.Input{Allow: o.allow}

	var live func(name string) (*apiextensionsv1.CustomResourceDefinition, error)

	if o.from != "" {
		old, err := openCRDs(ctx, o.from)
		if err != nil {
			return in, err
		}

		live = func(name string) (*apiextensionsv1.CustomResourceDefinition, error) { return published(old, name), nil }
	} else {
		cluster, objects, err := o.cluster()
		if err != nil {
			return in, err
		}

		in.Objects = objects
		live = func(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := cluster.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
				return nil, client.IgnoreNotFound(err)
			}

			return crd, nil
		}
	}

	for _, d := range desired {
		crd, err := live(d.Name)
		if err != nil {
			return in, fmt.Errorf("read CustomResourceDefinition %s: %w", d.Name, err)
		}

		in.Changes = append(in.Changes, safety.Change{Live: crd, Desired: d})
	}

	return in, nil
}

// cluster reads CRDs and objects of the management cluster.
func (o *crdsCheck) cluster() (client.Reader, safety.Objects, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig

	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}).
		ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf(
			"find the management cluster: %w; name its --kubeconfig, or compare with a release by --from",
			err,
		)
	}

	config.Timeout = requestTimeout

	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}

	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, err
	}

	objects, err := dynamic.NewForConfig(config)

	return reader, safety.ClusterObjects{Client: objects}, err
}

// openCRDs reads the CRDs of a file of components, a chart or a provider's folder.
func openCRDs(ctx context.Context, path string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var text []byte

	if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}

		text = data
	} else {
		c, err := openChart(ctx, path)
		if err != nil {
			return nil, err
		}

		for _, f := range c.CRDs {
			text = append(append(text, "\n---\n"...), f.Data...)
		}
	}

	crds, err := safety.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	return crds, nil
}

// published is a release's CRD as a cluster has it that never had another; nil when there is none
// of the name.
func published(
	crds []*apiextensionsv1.CustomResourceDefinition,
	name string,
) *apiextensionsv1.CustomResourceDefinition {
	i := slices.IndexFunc(crds, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Name == name })
	if i < 0 {
		return nil
	}

	for _, v := range crds[i].Spec.Versions {
		if v.Storage {
			crds[i].Status.StoredVersions = []string{v.Name}
		}
	}

	return crds[i]
}

func writeReport(out io.Writer, format string, report *safety.Report) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")

		return encoder.Encode(report)
	case "yaml":
		data, err := yaml.Marshal(report)
		if err != nil {
			return err
		}

		_, err = out.Write(data)

		return err
	}

	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if len(report.Findings) > 0 {
		fmt.Fprintln(table, "LEVEL\tCRD\tVERSION\tFIELD\tFINDING")
	}

	for _, f := range report.Findings {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", f.Level, f.CRD, f.Version, f.Path, f.Text())
	}

	if err := table.Flush(); err != nil {
		return err
	}

	for _, l := range report.Trials {
		fmt.Fprintln(out, l)
	}

	fmt.Fprintln(out, report.Summary())

	return nil
}
