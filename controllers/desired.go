package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/patches"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/values"
)

// ignoredReason is the reason of the event that tells of a part of the spec without effect.
const ignoredReason = "Ignored"

// desired is the release that the resource asks for: the chart, its values, and what changes the
// objects afterwards.
func (r *Reconciler) desired(
	ctx context.Context,
	provider v1alpha2.Provider,
	chart *providerChart,
	variables map[string]string,
) (release.Desired, error) {
	defer r.Metrics.Step(r.Type, metrics.StepValues)()

	spec := provider.GetSpec()

	overrides, err := r.Charts.Sources.ImageOverrides()
	if err != nil {
		return release.Desired{}, err
	}

	chosen, warnings, err := chart.schema.Values(values.Input{
		Spec:           spec,
		Variables:      variables,
		ImageOverrides: overrides,
	})
	if err != nil {
		return release.Desired{}, err
	}

	if provider.GetGeneration() != provider.GetStatus().ObservedGeneration {
		for _, warning := range warnings {
			r.Events.Eventf(provider, nil, corev1.EventTypeWarning, ignoredReason, "Reconcile", "%s", warning)
		}
	}

	switch {
	case chart.plain():
		chosen = map[string]any{} // its values are its own
	case r.ImageRegistry != "":
		chosen["imageRegistry"] = r.ImageRegistry
	}

	desired := release.Desired{
		Namespace: provider.GetNamespace(), Name: releaseName(v1alpha2.Label(provider)),
		Chart: chart.Chart, ChartDigest: chart.Digest, Values: chosen, HistoryLimit: historyLimit(spec),
	}

	additional, err := patches.ReadAdditional(ctx, r.Live, provider)
	if err != nil {
		return release.Desired{}, err
	}

	renderer, err := patches.New(patches.Input{
		Namespace: provider.GetNamespace(), Label: v1alpha2.Label(provider), Additional: additional, Variables: variables,
		Scope: r.Target.Client, Patches: spec.Patches, ManifestPatches: spec.ManifestPatches, Paused: spec.Paused,
	})
	if err != nil {
		return release.Desired{}, err
	}

	if renderer != nil {
		desired.PostRenderer = renderer
	}

	return desired, nil
}
