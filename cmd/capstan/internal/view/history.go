package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Revision is a revision in the history of a release.
type Revision struct {
	Revision int                     `json:"revision"`
	Updated  time.Time               `json:"updated"`
	Status   v1alpha2.RevisionStatus `json:"status"`
	Version  string                  `json:"version,omitempty"`
	// By is the program that created it: capstan, or helm for any other one.
	By string `json:"by"`
	// Reason is why capstan created it; empty if that is unknown.
	Reason string `json:"reason,omitempty"`
	// Healthy means that all objects of the revision were healthy at some point. Failure is why the
	// revision failed, if the operator knows.
	Healthy bool                     `json:"healthy"`
	Failure v1alpha2.RevisionFailure `json:"failure,omitempty"`
	// Digest of the chart; empty if another program created the revision.
	Digest      string `json:"chartDigest,omitempty"`
	Description string `json:"description,omitempty"`
}

// The programs that create revisions, as they are in Revision.By.
const (
	byCapstan = "capstan"
	ByHelm    = "helm"
)

// NewHistory returns the facts about the revisions in the status of a resource, oldest first, given newest first with
// their records.
func NewHistory(revisions []state.Revision, records []*release.Record) []Revision {
	views := make([]Revision, 0, len(revisions))

	for i, r := range slices.Backward(revisions) {
		v := Revision{
			Revision:    r.Number,
			Updated:     r.Time.Time,
			Status:      r.Status,
			Version:     cmp.Or(records[i].AppVersion, r.Version),
			By:          ByHelm,
			Healthy:     r.Healthy,
			Failure:     r.Failure,
			Digest:      r.ChartDigest,
			Description: records[i].Description,
		}

		var (
			before   *v1alpha2.ReleaseRevision // nil if it is not known
			settings []string                  // the names of those that have changed since
		)

		if i+1 < len(revisions) {
			before = &revisions[i+1].ReleaseRevision
			settings = changedSettings(records[i+1].Values, records[i].Values)
		}

		if r.Ours() {
			v.By, v.Reason = byCapstan, reason(r.ReleaseRevision, before, settings)
		}

		views = append(views, v)
	}

	return views
}

// RecordedHistory is NewHistory for users who may not read Helm's records: as the status of a resource has it, without
// descriptions.
func RecordedHistory(p v1alpha2.Provider) []Revision {
	history := p.GetStatus().History
	revisions := make([]state.Revision, len(history))

	for i, r := range history {
		revisions[i].ReleaseRevision = r
		if r.Digest != "" {
			revisions[i].Origin = r.Number
		}
	}

	return NewHistory(revisions, slices.Repeat([]*release.Record{{}}, len(history)))
}

// reason returns why capstan created a revision: what has changed since the one before, if that is known, with the
// names of settings.
func reason(r v1alpha2.ReleaseRevision, before *v1alpha2.ReleaseRevision, settings []string) string {
	var reasons []string

	switch {
	case r.RollbackTo != 0:
		return fmt.Sprintf("rollback to revision %d", r.RollbackTo)
	case before != nil:
		reasons = changes(r, *before, settings)
	case r.Number == 1 && r.Adopted == 0:
		return "installation"
	}

	if r.Adopted > 0 {
		adopted := fmt.Sprintf("%d objects adopted", r.Adopted)
		if r.AdoptedVersion != "" {
			adopted += " from " + r.AdoptedVersion
		}

		reasons = append(reasons, adopted)
	}

	return object.List(reasons, maxReasons)
}

// changes returns what has changed from one revision to the next, with the names of settings.
func changes(r, before v1alpha2.ReleaseRevision, settings []string) (changed []string) {
	if before.ContentDigest == "" { // what another program has made is not known
		return []string{fmt.Sprintf("replaces helm's revision %d", before.Number)}
	}

	add := func(is bool, text string) {
		if is {
			changed = append(changed, text)
		}
	}

	automatic := r.Request.AutomaticUpgrade == r.Version && before.Request.AutomaticUpgrade != r.Version
	upgraded := before.Version != r.Version

	add(upgraded && automatic, "automatic upgrade")
	add(upgraded && !automatic, "version")
	add(!before.Paused && r.Paused, "paused")
	add(before.Paused && !r.Paused, "unpaused")
	add(before.Inputs.Manifests != r.Inputs.Manifests, "additional manifests")
	add(!upgraded && before.Inputs.Source != r.Inputs.Source, "source")
	add(len(settings) == 0 && before.Inputs.Variables != r.Inputs.Variables, "variables")

	changed = append(changed, settings...)

	add(len(changed) == 0 && before.ContentDigest == r.ContentDigest, "applied again")
	add(len(changed) == 0, "settings")

	return changed
}

// maxReasons bounds how much of what has changed is named.
const maxReasons = 6

// changedSettings returns the names of the values that differ, sorted. The values themselves can be secrets.
func changedSettings(before, after map[string]any) []string {
	if before == nil || after == nil { // one is not known
		return nil
	}

	var names []string

	for _, path := range differing(nil, before, after) {
		if len(path) > 1 && path[0] == "deployments" && hasOne(before, path[1]) && hasOne(after, path[1]) {
			path = path[2:] // there is no other
		}

		path = slices.DeleteFunc(path, func(word string) bool {
			return word == "variables" || word == "deployments" || word == "containers"
		})
		names = append(names, strings.Join(path, "."))
	}

	slices.Sort(names)

	return slices.Compact(names)
}

// hasOne reports whether values are for no other Deployment than the one with a name.
func hasOne(values map[string]any, name string) bool {
	deployments, _ := values["deployments"].(map[string]any)

	for other := range deployments {
		if other != name {
			return false
		}
	}

	return true
}

// differing returns the paths of the innermost values that differ.
func differing(path []string, before, after any) (found [][]string) {
	a, isMap := before.(map[string]any)
	b, both := after.(map[string]any)

	switch {
	case equality.Semantic.DeepEqual(before, after):
		return nil
	case !isMap && before != nil || !both && after != nil || len(a)+len(b) == 0:
		return [][]string{path}
	}

	for key := range sets.KeySet(a).Union(sets.KeySet(b)) {
		found = append(found, differing(append(slices.Clone(path), key), a[key], b[key])...)
	}

	return found
}

// Health summarizes the revision's health in one word.
func (v Revision) Health() string {
	switch {
	case v.Healthy:
		return "yes"
	case v.Status == v1alpha2.RevisionFailed:
		return "no"
	default:
		return "?"
	}
}

// ShortDigest returns as much of a digest as users compare.
func ShortDigest(digest string) string {
	const length = 12

	hex := strings.TrimPrefix(digest, "sha256:")

	return hex[:min(len(hex), length)]
}
