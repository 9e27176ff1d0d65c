package controllers

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// move is a tag that leads elsewhere than when the chart in use was fetched.
type move struct {
	// chart in use.
	chart v1alpha2.ChartStatus
	// to is the tag, with the digest that it leads to now.
	to oci.Reference
}

// lookForMove asks a registry where the tag leads that the chart in use came from; nil when that is
// nowhere else.
func lookForMove(ctx context.Context, from source.Source, provider v1alpha2.Provider) (*move, error) {
	tagged, ok := from.(source.TaggedSource)

	status := provider.GetStatus()
	if !ok || status.Chart == nil {
		return nil, nil
	}

	inUse := source.Digests{Manifest: fetchedAs(status.Chart), Chart: digest.Digest(status.Chart.Digest)}
	if status.Chart.Plain && inUse.Manifest == "" { // its archive was packed anew, so there is nothing to compare
		return nil, nil
	}

	to, err := tagged.CheckTag(ctx, source.Version{Name: status.DesiredVersion}, inUse)
	if err != nil || to.Digest == "" {
		return nil, err
	}

	return &move{chart: *status.Chart, to: to}, nil
}

// fetchedAs is the digest of the manifest that a chart came from; empty when it did not come from a
// registry.
func fetchedAs(chart *v1alpha2.ChartStatus) digest.Digest {
	ref, err := oci.Parse(chart.Source)
	if err != nil {
		return ""
	}

	return ref.Digest
}

// String tells the whole story, with what to do.
func (m *move) String() string {
	tag := m.to
	tag.Digest = ""

	accept := fmt.Sprintf(
		"What is in use stays. To have what is there now, change the annotation %s; else have the tag put back",
		v1alpha2.ReconcileRequestAnnotation,
	)
	if before := fetchedAs(&m.chart); before != "" {
		return fmt.Sprintf(
			"%s led to %s when it was fetched, and leads to %s now. %s, or pin what is in use: %s in spec.fetchConfig",
			tag,
			before,
			m.to.Digest,
			accept,
			m.chart.Source,
		)
	}

	return fmt.Sprintf(
		"%s leads to %s, which holds something else than the chart in use, %s. %s",
		tag,
		m.to.Digest,
		m.chart.Digest,
		accept,
	)
}

// reportMove writes the condition, and an event when there is news.
func (r *Reconciler) reportMove(provider v1alpha2.Provider, moved *move) {
	if moved == nil {
		conditions.Delete(provider, v1alpha2.SourceChangedCondition)
		return
	}

	message := moved.String()
	if before := conditions.Get(provider, v1alpha2.SourceChangedCondition); before == nil || before.Message != message {
		r.Events.Eventf(provider, nil, corev1.EventTypeWarning, v1alpha2.TagMovedReason, "Fetch", "%s", message)
	}

	conditions.MarkTrue(provider, v1alpha2.SourceChangedCondition, v1alpha2.TagMovedReason, "%s", message)
}
