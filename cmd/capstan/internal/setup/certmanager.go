package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/chartgen/mirror/certmanager"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// certificates is the kind of cert-manager's API that most providers need.
var certificates = schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}

// planCertManager returns the release to install, and what is installed from where, or why there is nothing to install.
func (o *options) planCertManager(ctx context.Context, cluster *cli.Cluster) (*chartRelease, string, error) {
	if o.certManager == "none" {
		return nil, "not installed, because of --cert-manager none", nil
	}

	r := &chartRelease{name: "cert-manager", namespace: "cert-manager"}

	last, err := r.last(o.cluster.Getter())
	if err != nil {
		return nil, "", err
	}

	failed := last != nil && last.Info.Status == helmrelease.StatusFailed

	_, err = cluster.Client.RESTMapper().RESTMapping(certificates)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, "", fmt.Errorf("look up the API of cert-manager: %w", err)
	}

	if err == nil && !failed {
		return nil, "the cluster has its API already", nil
	}

	var from string

	if r.chart, from, err = o.certManagerChart(ctx); err != nil {
		return nil, "", err
	}

	if r.values, err = readValues("--cert-manager-values", o.certManagerValues); err != nil {
		return nil, "", err
	}

	own := chartutil.Values{"crds": map[string]any{"enabled": true}}
	if registry := o.planner.Config.Options.ImageRegistry; registry != "" {
		own = chartutil.CoalesceTables(own, certmanager.ImageValues(registry))
	}

	r.values = chartutil.CoalesceTables(r.values, own)

	return r, fmt.Sprintf("%s (%s)", r, from), nil
}

// certManagerChart reads the chart, from the mirror if it is there, and returns where it is from.
func (o *options) certManagerChart(ctx context.Context) (*helmchart.Chart, string, error) {
	if strings.HasSuffix(o.certManager, ".tgz") {
		loaded, err := loader.LoadFile(o.certManager)
		return loaded, o.certManager, cli.FileError(err)
	}

	client, err := cli.Registries(o.planner.Config.RegistryCA, o.planner.Config.RegistryConfig)
	if err != nil {
		return nil, "", err
	}

	public, err := certmanager.ParseChart(o.certManager)
	if err != nil {
		return nil, "", fmt.Errorf("--cert-manager: %w", err)
	}

	candidates := []oci.Reference{public}

	if repository := o.planner.Config.ChartRepository; repository != "" && !strings.Contains(o.certManager, "://") {
		mirror, err := oci.ParseRepository(repository)
		if err != nil {
			return nil, "", fmt.Errorf("--chart-repository: %w", err)
		}

		mirrored := mirror.Join(certmanager.ChartName)
		mirrored.Tag = public.Tag
		candidates = []oci.Reference{mirrored, public}
	}

	var failures []error

	for _, ref := range candidates {
		pulled, err := client.PullChart(ctx, ref)
		if err == nil {
			loaded, err := loader.LoadArchive(bytes.NewReader(pulled.Archive))
			return loaded, ref.String(), err
		}

		failures = append(failures, err)

		if !transport.Is(err, transport.NotFound) {
			break
		}
	}

	return nil, "", fmt.Errorf("%w; name a chart with --cert-manager, or install cert-manager yourself first",
		errors.Join(failures...))
}

// readValues reads a file with values of a chart; an empty name is no file.
func readValues(flag, file string) (map[string]any, error) {
	if file == "" {
		return map[string]any{}, nil
	}

	data, err := cli.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}

	values, err := chartutil.ReadValues(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %s is no YAML map of values", flag, file)
	}

	return values, nil
}
