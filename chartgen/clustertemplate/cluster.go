package clustertemplate

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
)

// The marks of the ConfigMaps in which store.Cluster keeps charts.
const (
	labelComponent   = "app.kubernetes.io/component"
	componentChart   = "capstan-chart"
	annotationDigest = v1alpha2.Prefix + "/chart-digest"
	annotationChunks = v1alpha2.Prefix + "/chart-chunks"
	chunkKey         = "chart"
)

// FromCluster takes the templates out of the chart that the operator keeps in the management cluster. Where the name is
// left open there must be one infrastructure provider; where the version is, the installed one is meant.
func FromCluster(ctx context.Context, c client.Client, want Infrastructure) (*Set, error) {
	provider, err := installedProvider(ctx, c, want.Name)
	if err != nil {
		return nil, err
	}
	want.Name = provider.Name
	if want.Version == "" && provider.Status.InstalledVersion != nil {
		want.Version = *provider.Status.InstalledVersion
	}
	if want.Version == "" {
		return nil, &source.NotFoundError{Message: fmt.Sprintf("InfrastructureProvider %s is not installed yet; see its conditions, or name a version", client.ObjectKeyFromObject(provider))}
	}
	stored, err := storedChart(ctx, c, provider, want.Version)
	if err != nil {
		return nil, fmt.Errorf("InfrastructureProvider %s: %w", client.ObjectKeyFromObject(provider), err)
	}
	return FromChart(stored, want)
}

// installedProvider is the infrastructure provider of that name, or the only one there is.
func installedProvider(ctx context.Context, c client.Client, name string) (*v1alpha2.InfrastructureProvider, error) {
	list := &v1alpha2.InfrastructureProviderList{}
	err := c.List(ctx, list)
	if meta.IsNoMatchError(err) {
		return nil, &source.NotFoundError{Message: "the management cluster knows no InfrastructureProviders; install Capstan there, or name a chart or a folder to read the templates from"}
	}
	if err != nil {
		return nil, fmt.Errorf("list InfrastructureProviders of the management cluster: %w", err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
		if names[i] == name || name == "" && len(names) == 1 {
			return &list.Items[i], nil
		}
	}
	switch {
	case len(names) == 0:
		return nil, &source.NotFoundError{Message: "the management cluster has no InfrastructureProvider; create one, or name a chart or a folder to read the templates from"}
	case name == "":
		return nil, &source.NotFoundError{Message: "the management cluster has several infrastructure providers; choose one: " + strings.Join(names, ", ")}
	default:
		return nil, &source.NotFoundError{Message: fmt.Sprintf("the management cluster has no InfrastructureProvider %s; there is %s", name, strings.Join(names, ", "))}
	}
}

// storedChart reads the provider's stored chart of a version. Of several that were made of different bytes under one
// version, it is the one that the provider's status names, else the newest.
func storedChart(ctx context.Context, c client.Client, provider *v1alpha2.InfrastructureProvider, version string) (*chart.Chart, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := c.List(ctx, list, client.InNamespace(provider.Namespace),
		client.MatchingLabels{labelComponent: componentChart, v1alpha2.ProviderLabel: v1alpha2.LabelValue(v1alpha2.Label(provider))})
	if err != nil {
		return nil, fmt.Errorf("list its stored charts: %w", err)
	}
	heads := chartHeads(list.Items, version, provider.Status.Chart)
	if len(heads) == 0 {
		return nil, &source.NotFoundError{Message: "the cluster keeps no chart of it; its status tells where the chart is, pull it from there and give the .tgz"}
	}
	releases := make([]source.Release, len(heads))
	for i, h := range heads {
		releases[i] = source.Release{Version: h.version.Original(), Name: h.object.Name}
	}
	release, err := source.Pick(releases, version, "")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(heads, func(h chartHead) bool { return h.object.Name == release.Name })
	return readChart(ctx, c, &heads[i].object)
}

// chartHead is the first ConfigMap of a stored chart.
type chartHead struct {
	object  metav1.PartialObjectMetadata
	version *semver.Version
	current bool // the provider's status names this very chart
}

// chartHeads finds the heads among a provider's ConfigMaps and orders them: the newest version first, and of one version
// the current chart, else the one made last. A version that is no label's value is known by the wanted one's label.
func chartHeads(objects []metav1.PartialObjectMetadata, wanted string, status *v1alpha2.ChartStatus) []chartHead {
	var heads []chartHead
	for _, o := range objects {
		label := o.Labels[v1alpha2.VersionLabel]
		if label == v1alpha2.LabelValue(wanted) {
			label = wanted
		}
		version, err := semver.NewVersion(label)
		if err != nil || o.Annotations[annotationChunks] == "" {
			continue
		}
		heads = append(heads, chartHead{object: o, version: version, current: status != nil && status.Digest == o.Annotations[annotationDigest]})
	}
	slices.SortFunc(heads, func(a, b chartHead) int {
		order := cmp.Or(b.version.Compare(a.version), b.object.CreationTimestamp.Compare(a.object.CreationTimestamp.Time))
		if a.current != b.current && a.version.Equal(b.version) {
			order = 1
			if a.current {
				order = -1
			}
		}
		return order
	})
	return heads
}

// readChart puts the chunks of a chart together and checks them against their digest.
func readChart(ctx context.Context, c client.Client, head *metav1.PartialObjectMetadata) (*chart.Chart, error) {
	key := client.ObjectKeyFromObject(head)
	damaged := fmt.Errorf("ConfigMap %s does not hold the chart that it should; delete it, and the operator makes the chart anew", key)
	chunks, err := strconv.Atoi(head.Annotations[annotationChunks])
	if err != nil {
		return nil, damaged
	}
	var archive []byte
	for i := range chunks {
		chunk, name := &corev1.ConfigMap{}, key
		if i > 0 {
			name.Name += "-" + strconv.Itoa(i)
		}
		if err := c.Get(ctx, name, chunk); err != nil {
			return nil, fmt.Errorf("read chart from ConfigMap %s: %w", name, err)
		}
		archive = append(archive, chunk.BinaryData[chunkKey]...)
	}
	if chart.Digest(archive) != head.Annotations[annotationDigest] {
		return nil, damaged
	}
	stored, err := chart.Read(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", key, err)
	}
	return stored, nil
}
