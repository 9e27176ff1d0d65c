package upgrades

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// Move is a registry's tag that no longer points to what the chart in use was fetched from.
type Move struct {
	// chart in use.
	chart v1alpha2.ChartStatus
	// to is the tag with the digest that it points to now.
	to oci.Reference
}

// findMove asks a registry where the tag points that the chart in use came from; nil when that has
// not changed.
func findMove(ctx context.Context, from source.Source, provider v1alpha2.Provider) (*Move, error) {
	tagged, ok := from.(source.TaggedSource)
	status := provider.GetStatus()

	if !ok || status.Chart == nil || status.Chart.Source == source.InConfigMap {
		return nil, nil
	}

	inUse := source.Digests{Manifest: fetchedAs(status.Chart), Chart: digest.Digest(status.Chart.Digest)}

	to, err := tagged.CheckTag(ctx, source.Version{Name: status.DesiredVersion}, inUse)
	if err != nil || to.Digest == "" {
		return nil, err
	}

	return &Move{chart: *status.Chart, to: to}, nil
}

// fetchedAs returns the digest of the manifest that a chart came from; empty when it did not come
// from a registry.
func fetchedAs(chart *v1alpha2.ChartStatus) digest.Digest {
	ref, err := oci.Parse(chart.Source)
	if err != nil {
		return ""
	}

	return ref.Digest
}

// String describes the move and what a user can do about it.
func (m *Move) String() string {
	tag := m.to
	tag.Digest = ""

	accept := "The chart in use stays. To use the new content, change the annotation " +
		v1alpha2.ReconcileRequestAnnotation + "; otherwise have the tag restored"

	if before := fetchedAs(&m.chart); before != "" {
		return fmt.Sprintf("%s pointed to %s when it was fetched, and points to %s now. "+
			"%s, or pin the chart in use: %s in spec.fetchConfig", tag, before, m.to.Digest, accept, m.chart.Source)
	}

	return fmt.Sprintf("%s points to %s, whose content differs from that of the chart in use, %s. %s",
		tag, m.to.Digest, m.chart.Digest, accept)
}
