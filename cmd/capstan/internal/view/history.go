package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
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

// NewRevision returns the facts about a revision from the status of the resource and its record.
func NewRevision(r state.Revision, record *release.Record) Revision {
	v := recorded(r.ReleaseRevision, r.Ours())
	v.Version = cmp.Or(record.AppVersion, v.Version)
	v.Description = record.Description

	return v
}

// recorded returns the facts about a revision, which Capstan may have created, from the status of the resource.
func recorded(r v1alpha2.ReleaseRevision, ours bool) Revision {
	v := Revision{
		Revision: r.Number,
		Updated:  r.Time.Time,
		Status:   r.Status,
		Version:  r.Version,
		By:       ByHelm,
		Healthy:  r.Healthy,
		Failure:  r.Failure,
		Digest:   r.ChartDigest,
	}

	if ours {
		v.By, v.Reason = byCapstan, reason(r)
	}

	return v
}

// reason returns why capstan created a revision.
func reason(r v1alpha2.ReleaseRevision) string {
	var reasons []string

	switch {
	case r.RollbackTo != 0:
		reasons = append(reasons, fmt.Sprintf("rollback to revision %d", r.RollbackTo))
	case r.Request.Generation != 0:
		reasons = append(reasons, fmt.Sprintf("generation %d of the resource", r.Request.Generation))
	}

	if r.Adopted > 0 {
		adopted := fmt.Sprintf("%d objects adopted", r.Adopted)
		if r.AdoptedVersion != "" {
			adopted += " from " + r.AdoptedVersion
		}

		reasons = append(reasons, adopted)
	}

	return strings.Join(reasons, ", ")
}

// RecordedHistory returns the history in the status of a resource, oldest first, for users who may not read Helm's
// records. It has no descriptions.
func RecordedHistory(p v1alpha2.Provider) []Revision {
	history := p.GetStatus().History
	views := make([]Revision, 0, len(history))

	for _, r := range slices.Backward(history) {
		views = append(views, recorded(r, r.Digest != ""))
	}

	return views
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
