// Package trial finds out which stored objects a changed CustomResourceDefinition would break. It tries the change on
// them with the API server's own code: it drops what the new schema does not define, and validates what is left by the
// old schema and by the new one.
//
// Nothing here writes to a cluster, and no message contains values of an object.
package trial

import (
	"context"
	"fmt"
	"iter"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/crds/versions"
)

const (
	// maxBroken ends the trial of a CRD: that many broken objects prove the point.
	maxBroken = 100
	// maxFindings bounds the findings about a CRD. Objects with many fields could have one for each.
	maxFindings = 100
)

// Objects reads the objects of a cluster; see ClusterObjects.
type Objects interface {
	// All returns every object of a resource, in the requested version, with one page of them in
	// memory at a time. A pair with an error is the last one.
	All(ctx context.Context, resource schema.GroupVersionResource) iter.Seq2[*unstructured.Unstructured, error]
}

// Change is the change of one CRD.
type Change struct {
	// Live is the complete CRD in the cluster.
	Live *apiextensionsv1.CustomResourceDefinition
	// Desired is the CRD that would be applied.
	Desired *apiextensionsv1.CustomResourceDefinition
	// Users are the labels of the other providers that need a version of the CRD, by its name.
	Users map[string][]string
}

// Run returns what a change would break. An error means that objects could not be read, and says nothing about the
// change.
func Run(ctx context.Context, change Change, objects Objects) ([]Finding, error) {
	t := &trial{Change: change}
	t.compareVersions()

	for _, version := range t.versionsToRead() {
		read, err := t.tryVersion(ctx, objects, version)

		switch {
		case t.needsWebhook(version, err):
			continue
		case err != nil:
			return nil, fmt.Errorf("try the new CustomResourceDefinition on the %s in version %s: %w",
				t.Live.Name, version, err)
		}

		// Without objects in one version there are none in any other.
		if read == 0 || t.broken >= maxBroken {
			break
		}
	}

	findings := make([]Finding, 0, len(t.findings))
	for _, f := range t.findings {
		findings = append(findings, *f)
	}

	return findings, nil
}

// trial is the trial of one change.
type trial struct {
	Change
	// removed are the versions that are removed or no longer served.
	removed []string
	// changed are the versions whose objects are tried.
	changed []changedVersion
	// findings so far, and the object that was last recorded for each.
	findings []*Finding
	recorded map[*Finding]*unstructured.Unstructured
	// broken is the number of objects that break.
	broken int
}

// changedVersion is a version in which objects are read, and the one whose schema they have to fit.
type changedVersion struct {
	from, to *apiextensionsv1.CustomResourceDefinitionVersion
}

// compareVersions finds the versions that are removed and those that change.
func (t *trial) compareVersions() {
	for i := range t.Live.Spec.Versions {
		from := &t.Live.Spec.Versions[i]
		to := versions.Find(t.Desired, from.Name)

		if to == nil || from.Served && !to.Served {
			t.removed = append(t.removed, from.Name)
			t.findUsers(from.Name)
		}

		if to != nil && from.Served && !t.sameSchema(from, to) {
			t.changed = append(t.changed, changedVersion{from, to})
		}
	}

	// A webhook is trusted to convert all fields. Without one, objects are stored as they are.
	from, to := versions.Storage(t.Live), versions.Storage(t.Desired)
	if from != nil && from.Served && to != nil && from.Name != to.Name && !hasWebhook(t.Desired) {
		t.changed = append(t.changed, changedVersion{from, to})
	}
}

func (t *trial) sameSchema(from, to *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return t.Live.Spec.PreserveUnknownFields == t.Desired.Spec.PreserveUnknownFields &&
		equality.Semantic.DeepEqual(from.Schema, to.Schema)
}

// findUsers adds a finding if other providers need a version that is removed.
func (t *trial) findUsers(version string) {
	for _, label := range t.Users[version] {
		t.finding(Finding{
			Version: version,
			Message: "the version is removed, but " + label + " needs it",
			Remedy:  "upgrade " + label + " first to a version that does not",
		})
	}
}

// versionsToRead returns the versions in which objects are read. The one that needs no conversion is the first, and
// shows who has written the objects in a version that is removed.
func (t *trial) versionsToRead() []string {
	var names []string

	if v := t.preferred(); len(t.removed) > 0 && v != "" {
		names = append(names, v)
	}

	for _, c := range t.changed {
		switch {
		case slices.Contains(names, c.from.Name):
		case c.from.Name == t.preferred():
			names = slices.Insert(names, 0, c.from.Name)
		default:
			names = append(names, c.from.Name)
		}
	}

	return names
}

// preferred returns the version in which objects are read without a conversion; empty if none is served.
func (t *trial) preferred() string {
	if v := versions.Preferred(t.Live); v != nil {
		return v.Name
	}

	return ""
}

// tryVersion reads the objects in one version, tries all changes from it, and returns how many it has read.
func (t *trial) tryVersion(ctx context.Context, objects Objects, version string) (read int, err error) {
	var tries []*try

	for object, err := range objects.All(ctx, versions.Resource(t.Live, version)) {
		if err != nil {
			return read, err
		}

		// Compiling the schemas is slow, so it is left out if there are no objects.
		if read == 0 {
			if tries, err = t.tries(version); err != nil {
				return 0, err
			}
		}

		read++

		broken := t.breaks(ctx, tries, object)

		// The objects of one version are enough to find out who has written them.
		if version == t.preferred() && t.losesWriters(object) {
			broken = true
		}

		if broken {
			t.broken++
		}

		if t.broken >= maxBroken {
			break
		}
	}

	return read, nil
}

// needsWebhook reports whether objects cannot be read in a version because a conversion webhook fails. What can be read
// in the storage version must be enough then, because the change may be what repairs the webhook.
func (t *trial) needsWebhook(version string, err error) bool {
	return hasWebhook(t.Live) && version != t.preferred() && apierrors.IsInternalError(err)
}

// tries prepares the changes from a version.
func (t *trial) tries(version string) ([]*try, error) {
	var tries []*try

	for _, c := range t.changed {
		if c.from.Name != version {
			continue
		}

		prepared, err := newTry(t.Change, c)
		if err != nil {
			return nil, err
		}

		tries = append(tries, prepared)
	}

	return tries, nil
}

// losesWriters records which removed versions an object was written in, and reports whether there are any.
func (t *trial) losesWriters(object *unstructured.Unstructured) bool {
	broken := false

	for _, version := range t.removed {
		if writtenIn(object, t.Live.Spec.Group, version) {
			broken = true

			t.record(object, "metadata.managedFields", Finding{
				Version:         version,
				Message:         "the version is removed, but objects were written in it",
				Remedy:          remedyClients,
				UpdatesRejected: true,
			})
		}
	}

	return broken
}

// breaks records what breaks an object and reports whether anything does. A status that breaks does not count if the
// object can still be updated: its controller writes it again.
func (t *trial) breaks(ctx context.Context, tries []*try, object *unstructured.Unstructured) bool {
	broken := false

	for _, try := range tries {
		for _, problem := range try.problems(ctx, object) {
			if inStatus(problem.Path) && !problem.UpdatesRejected {
				continue
			}

			broken = true

			t.record(object, problem.field, problem.Finding)
		}
	}

	return broken
}

// writtenIn reports whether the managedFields of an object name a version. Server-side apply fails for such an object
// once the version is gone.
func writtenIn(object *unstructured.Unstructured, group, version string) bool {
	apiVersion := schema.GroupVersion{Group: group, Version: version}.String()

	for _, entry := range object.GetManagedFields() {
		if entry.APIVersion == apiVersion {
			return true
		}
	}

	return false
}

// finding returns the finding with the same version, path and message, which it adds if there is none; nil if there
// are too many.
func (t *trial) finding(f Finding) *Finding {
	f.CRD = t.Live.Name

	for _, known := range t.findings {
		if known.Version == f.Version && known.Path == f.Path && known.Message == f.Message {
			return known
		}
	}

	if len(t.findings) == maxFindings {
		return nil
	}

	t.findings = append(t.findings, &f)

	return &f
}

// record counts an object that breaks, once for each finding, and keeps a few as examples.
func (t *trial) record(object *unstructured.Unstructured, field string, f Finding) {
	const maxExamples, maxFields = 3, 3

	known := t.finding(f)
	if known == nil {
		return
	}

	known.UpdatesRejected = known.UpdatesRejected || f.UpdatesRejected

	if t.recorded[known] != object {
		if t.recorded == nil {
			t.recorded = map[*Finding]*unstructured.Unstructured{}
		}

		t.recorded[known] = object
		known.Affected++

		if len(known.Examples) < maxExamples {
			known.Examples = append(known.Examples, Example{Namespace: object.GetNamespace(), Name: object.GetName()})
		}
	}

	if known.Affected > maxExamples {
		return
	}

	example := &known.Examples[known.Affected-1]
	if field != "" && len(example.Fields) < maxFields && !slices.Contains(example.Fields, field) {
		example.Fields = append(example.Fields, field)
	}
}

func hasWebhook(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}
