package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
)

// mirroredProviders say whose charts are mirrored.
type mirroredProviders struct {
	named                              []string // PROVIDER[:VERSION]
	file, from, config, kubeconfig, at string
	cluster                            bool
}

func (p *mirroredProviders) bind(flags *pflag.FlagSet) {
	flags.StringVarP(&p.file, "file", "f", "", "a file of provider resources, whose names and versions are taken")
	flags.StringVar(
		&p.from,
		"from",
		"",
		"take releases from this folder, in clusterctl's local-repository layout, instead of where they are published",
	)
	flags.StringVar(
		&p.config,
		"config",
		"",
		"a configuration file in clusterctl's format (default: clusterctl's own, if there is one)",
	)
	flags.BoolVar(&p.cluster, "cluster", false, "take the charts that are in use in a cluster")
	flags.StringVar(&p.kubeconfig, "kubeconfig", "", "the cluster's kubeconfig; by default kubectl's")
	flags.StringVar(&p.at, "context", "", "the context of the kubeconfig")
}

// charts finds or makes the charts.
func (p *mirroredProviders) charts(ctx context.Context) ([]*chart.Chart, error) {
	wanted := slices.Clone(p.named)
	if p.file != "" {
		inFile, err := readResources(p.file)
		if err != nil {
			return nil, err
		}

		wanted = append(wanted, inFile...)
	}

	var charts []*chart.Chart

	for _, name := range wanted {
		name, version, _ := strings.Cut(name, ":")

		c, err := p.chart(ctx, name, version)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		charts = append(charts, c)
	}

	if !p.cluster {
		return charts, nil
	}

	inUse, err := p.chartsInUse(ctx)

	return append(charts, inUse...), err
}

// chart makes the chart of a provider's release.
func (p *mirroredProviders) chart(ctx context.Context, name, version string) (*chart.Chart, error) {
	from, err := p.source(name)
	if err != nil {
		return nil, err
	}

	release, err := source.Resolve(ctx, from, version, "")
	if err != nil {
		return nil, err
	}

	b, err := from.Fetch(ctx, release)
	if err != nil {
		return nil, err
	}

	return chartgen.Build(b)
}

func (p *mirroredProviders) source(name string) (source.Source, error) {
	if p.from != "" {
		return source.NewDirectory(filepath.Join(p.from, name))
	}

	o := catalogOptions{config: p.config, output: "table"}

	known, err := o.load()
	if err != nil {
		return nil, err
	}

	entry, err := findEntry(known, name)
	if err != nil {
		return nil, err
	}

	return known.Open(entry, nil)
}

// readResources reads the providers that a file of resources asks for, as LABEL:VERSION.
func readResources(file string) ([]string, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()

	var wanted []string

	decoder := utilyaml.NewYAMLOrJSONDecoder(in, 4096)

	for {
		object := &unstructured.Unstructured{}

		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}

		t := v1alpha2.ProviderType(object.GetKind())
		if object.GroupVersionKind().Group != v1alpha2.GroupVersion.Group || t.New() == nil {
			continue // Namespaces and Secrets beside them
		}

		version, _, _ := unstructured.NestedString(object.Object, "spec", "version")
		wanted = append(wanted, t.Label(object.GetName())+":"+version)
	}

	if len(wanted) == 0 {
		return nil, fmt.Errorf("%s holds no provider resource of %s", file, v1alpha2.GroupVersion.Group)
	}

	return wanted, nil
}

// chartsInUse reads the charts that the operator keeps in the cluster for what is installed.
func (p *mirroredProviders) chartsInUse(ctx context.Context) ([]*chart.Chart, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.kubeconfig

	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: p.at}).
		ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}

	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha2.AddToScheme(scheme)); err != nil {
		return nil, err
	}

	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}

	kept := &store.Cluster{Client: c}

	var charts []*chart.Chart

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list resources of the kind %s: %w", t, err)
		}

		for _, provider := range list.GetItems() {
			current := provider.GetStatus().Chart
			if current == nil {
				return nil, fmt.Errorf(
					"%s %s/%s has no chart yet; its conditions say why",
					t,
					provider.GetNamespace(),
					provider.GetName(),
				)
			}

			stored, err := kept.Find(
				ctx,
				store.FindOptions{
					Namespace:    provider.GetNamespace(),
					Provider:     v1alpha2.Label(provider),
					Version:      provider.GetStatus().DesiredVersion,
					PreferDigest: current.Digest,
				},
			)
			if err != nil {
				return nil, fmt.Errorf("the chart of %s %s/%s: %w", t, provider.GetNamespace(), provider.GetName(), err)
			}

			charts = append(charts, stored.Chart)
		}
	}

	return charts, nil
}
