package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Revision is a revision in the history of a release.
type Revision struct {
	Revision int       `json:"revision"`
	Updated  time.Time `json:"updated"`
	Status   string    `json:"status"`
	Version  string    `json:"version,omitempty"`
	// By is the program that created it: capstan, or helm for any other one.
	By string `json:"by"`
	// Reason is why capstan created it; empty if that is unknown.
	Reason string `json:"reason,omitempty"`
	// Healthy means that all objects of the revision were healthy at some point. Failure is why the
	// revision failed, if the operator knows.
	Healthy bool          `json:"healthy"`
	Failure state.Failure `json:"failure,omitempty"`
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
	v := Revision{
		Revision:    r.Number,
		Updated:     r.Created,
		Status:      string(r.Status),
		Version:     cmp.Or(record.AppVersion, r.Version),
		By:          ByHelm,
		Healthy:     r.Healthy,
		Failure:     r.Failure,
		Digest:      r.ChartDigest,
		Description: record.Description,
	}
	if r.Ours() {
		v.By = byCapstan
		v.Reason = reason(r)
	}

	return v
}

// reason returns why capstan created a revision.
func reason(r state.Revision) string {
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
// records. It does not contain who created a revision and why.
func RecordedHistory(p v1alpha2.Provider) []Revision {
	recorded := p.GetStatus().History
	views := make([]Revision, len(recorded))

	for i, r := range recorded { // newest first
		views[len(views)-1-i] = Revision{
			Revision: int(r.Revision),
			Updated:  r.Time.Time,
			Status:   r.Status,
			Version:  r.Version,
			Digest:   r.ChartDigest,
		}
	}

	return views
}

// Health summarizes the revision's health in one word.
func (v Revision) Health() string {
	switch {
	case v.Healthy:
		return "yes"
	case v.Status == string(state.StatusFailed):
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
