package provider

import (
	"context"
	"errors"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/object"
)

// careForCRDs applies the CRDs of the installed chart that are missing or were changed, and waits until they are
// served, when the change ended before it got to them.
func (r *run) careForCRDs(ctx context.Context) error {
	installed, err := r.installedChart(ctx)
	if installed == nil {
		return err
	}

	defer r.Metrics.TimeStep(r.Type, metrics.StepCRDs)()

	if err := r.prepareCRDs(ctx, installed, false); err != nil {
		return err
	}

	if err := r.applyCRDs(ctx); err != nil {
		return err
	}

	return r.served(ctx, installed)
}

// compareCRDs reports which CRDs of the installed chart another program has changed, and changes nothing.
func (r *run) compareCRDs(ctx context.Context) error {
	installed, err := r.installedChart(ctx)
	if installed == nil {
		return err
	}

	planned, err := r.planCRDs(ctx, installed)
	if err != nil {
		return err
	}

	r.crdDeviations = deviationsOf(planned)

	return nil
}

// installedChart returns the chart of the newest revision, with its CRDs as they were applied for it; nil if it
// is not deployed or cannot be read, is no longer stored, or if its CRDs have other patches now.
func (r *run) installedChart(ctx context.Context) (*chart.Chart, error) {
	revision, record := r.installed.Newest, r.installed.Record
	if record == nil || revision.ChartDigest == "" || revision.Status != v1alpha2.RevisionDeployed {
		return nil, nil
	}

	applied, err := r.Planner.Charts.InstalledCRDs(ctx, r.provider, revision.ChartDigest, record.PatchedCRDs)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	return applied, nil
}

// correctCRDs corrects the CRDs of a version that another program has changed, as spec.release.drift says.
// A correction that would break objects waits for a user, and keeps nothing else from being applied.
func (r *run) correctCRDs(ctx context.Context, planned *crds.Plan) error {
	policy := driftPolicy(r.provider.GetSpec())
	if policy == v1alpha2.DriftOff {
		return nil
	}

	r.crdDeviations = deviationsOf(planned)

	if policy != v1alpha2.DriftCorrect {
		return nil
	}

	now := time.Now()

	for i, d := range planned.Drifted {
		found := &r.crdDeviations[i]
		if !r.isDue(found.Object, now) {
			r.explainLeft(found, nil, now)
			continue
		}

		err := r.sendSafely(ctx, planned.Correction(d))
		if resultOf(err).Outcome == Waiting {
			return err // objects are being rewritten first
		}

		found.corrected = err == nil
		r.memory.corrections.record(found.Object, now, found.corrected)

		if !found.corrected {
			r.explainLeft(found, errors.New(resultOf(err).text()), now)
		}
	}

	r.announceCorrections(ctx, r.crdDeviations)

	return nil
}

// deviationsOf returns the CRDs of a plan that another program has changed.
func deviationsOf(planned *crds.Plan) []deviation {
	found := make([]deviation, 0, len(planned.Drifted))

	for _, d := range planned.Drifted {
		found = append(found, deviation{Difference: apply.Difference{
			Object: object.Key{
				GroupVersionKind: apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), Name: d.Name,
			},
			Fields: d.Fields,
		}})
	}

	return found
}
