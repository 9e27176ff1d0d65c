package safety

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// maxBroken ends a trial: that many broken objects prove the point.
const maxBroken = 100

// outcome is what objects show about the findings of a comparison.
type outcome struct {
	*comparison
	// removed are the results for comparison.removedVersions, and changes those for
	// comparison.versions, in the same order.
	removed []*result
	changes []*changeOutcome
	// trials describe the objects that were read, one entry for each version.
	trials []Trial
}

// changeOutcome is what objects show about the change of one version.
type changeOutcome struct {
	versionChange
	// results are those for the rules' findings, then those for objects that no rule explains.
	results []*result
}

// newOutcome returns the outcome of a comparison before anything was tried.
func newOutcome(c *comparison) *outcome {
	o := &outcome{comparison: c, removed: newResults(c.removedVersions)}
	for _, change := range c.versions {
		o.changes = append(o.changes, &changeOutcome{versionChange: change, results: newResults(change.findings)})
	}

	return o
}

// tryObjects tries the change on the existing objects.
func (o *outcome) tryObjects(ctx context.Context, objects Objects) error {
	for _, version := range o.versionsToRead() {
		trial, err := o.tryVersion(ctx, objects, version)
		if err != nil {
			return err
		}

		o.trials = append(o.trials, trial)
	}

	return nil
}

// versionsToRead returns the served versions whose objects can confirm or refute a finding, in the
// order of the live CRD.
func (o *outcome) versionsToRead() []string {
	var names []string

	for i := range o.live.Spec.Versions {
		v := &o.live.Spec.Versions[i]
		if v.Served && (o.changesMatter(v.Name) || len(o.removed) > 0 && v.Name == o.preferredVersion()) {
			names = append(names, v.Name)
		}
	}

	return names
}

// changesMatter reports whether a change from a version has a finding that could break objects.
func (o *outcome) changesMatter(version string) bool {
	return slices.ContainsFunc(o.changes, func(c *changeOutcome) bool {
		return c.from.Name == version &&
			slices.ContainsFunc(c.results, func(r *result) bool { return r.Level != Info })
	})
}

// preferredVersion returns the version in which objects are read if any will do; empty if none is
// served.
func (o *outcome) preferredVersion() string {
	if v := versions.Preferred(o.live); v != nil {
		return v.Name
	}

	return ""
}

// tryVersion reads the objects in one version and tries all changes from it.
func (o *outcome) tryVersion(ctx context.Context, objects Objects, version string) (Trial, error) {
	trial := Trial{CRD: o.live.Name, Version: version}

	var changes []*changeTrial

	for object, err := range objects.All(ctx, versions.Resource(o.live, version)) {
		if err != nil {
			return o.unreadable(trial, err)
		}

		// Compiling the schemas is slow, so it is left out if there are no objects.
		if trial.Objects == 0 {
			if changes, err = o.changeTrials(version); err != nil {
				return Trial{}, err
			}
		}

		trial.Objects++

		if o.tryObject(ctx, changes, object) {
			trial.Broken++
		}

		if version == o.preferredVersion() {
			o.findRemovedVersions(object)
		}

		if trial.Broken >= maxBroken {
			trial.Partial = true
			break
		}
	}

	return trial, nil
}

// unreadable handles objects that cannot be read. While a conversion webhook fails, objects can only
// be read in the storage version, and the upgrade may be what repairs the webhook: that is a finding.
// Everything else is an error.
func (o *outcome) unreadable(trial Trial, err error) (Trial, error) {
	needsWebhook := hasConversionWebhook(o.live) && trial.Version != o.preferredVersion()

	if !needsWebhook || !apierrors.IsInternalError(err) {
		return Trial{}, fmt.Errorf("read the %s in version %s, to find out whether the new "+
			"CustomResourceDefinition breaks them: %w", o.live.Name, trial.Version, err)
	}

	trial.Failed = err.Error()
	o.add(trial.Version, RuleObjectsUnreadable,
		"the objects could not be read in this version, so the change was not tried on them: %s", quoted(trial.Failed))

	return trial, nil
}

// changeTrials prepares the trials of all changes from a version.
func (o *outcome) changeTrials(version string) ([]*changeTrial, error) {
	var trials []*changeTrial

	for _, c := range o.changes {
		if c.from.Name != version || len(c.results) == 0 {
			continue
		}

		t, err := newChangeTrial(o.comparison, c)
		if err != nil {
			return nil, err
		}

		trials = append(trials, t)
	}

	return trials, nil
}

// tryObject tries changes on one object and reports whether any breaks it.
func (o *outcome) tryObject(ctx context.Context, changes []*changeTrial, object *unstructured.Unstructured) bool {
	broken := false

	for _, c := range changes {
		if c.try(ctx, object) {
			broken = true
		}
	}

	return broken
}

// findRemovedVersions records whether an object's managedFields name a removed version.
func (o *outcome) findRemovedVersions(object *unstructured.Unstructured) {
	for _, r := range o.removed {
		apiVersion := schema.GroupVersion{Group: o.live.Spec.Group, Version: r.Version}.String()

		for _, entry := range object.GetManagedFields() {
			if entry.APIVersion == apiVersion {
				r.record(object, "metadata.managedFields")
				r.UpdatesRejected = true
			}
		}
	}
}

// result is a finding with the objects that it affects.
type result struct {
	Finding
	lastRecorded *unstructured.Unstructured
}

func newResults(findings []Finding) []*result {
	results := make([]*result, 0, len(findings))
	for _, f := range findings {
		results = append(results, &result{Finding: f})
	}

	return results
}

// record counts an object that the change breaks, once, and keeps a few as examples.
func (r *result) record(object *unstructured.Unstructured, path string) {
	const maxExamples, maxFields = 3, 3

	if r.lastRecorded != object {
		r.lastRecorded = object
		r.Affected++

		if len(r.Examples) < maxExamples {
			r.Examples = append(r.Examples, Example{Namespace: object.GetNamespace(), Name: object.GetName()})
		}
	}

	if r.Affected > maxExamples {
		return
	}

	example := &r.Examples[r.Affected-1]
	if path != "" && len(example.Fields) < maxFields && !slices.Contains(example.Fields, path) {
		example.Fields = append(example.Fields, path)
	}
}
