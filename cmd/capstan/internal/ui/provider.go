package ui

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// Provider is the page of one provider.
type Provider struct {
	Frame

	Card Card
	// Revisions are the history of the release, newest first. Note is why it is incomplete; empty if it is not.
	Revisions []view.Revision
	Note      string
}

// newProvider returns the page of a provider, whose history is oldest first. Conditions and objects with problems come
// first.
func newProvider(frame Frame, v view.Provider, history []view.Revision, note string) *Provider {
	v.Details = cmp.Or(v.Details, &view.Details{})
	v.Conditions = slices.Clone(v.Conditions)
	v.Objects = slices.Clone(v.Objects)

	slices.SortStableFunc(v.Conditions, func(a, b metav1.Condition) int { return strings.Compare(level(a), level(b)) })
	slices.SortStableFunc(v.Objects, func(a, b view.Object) int { return strings.Compare(level(a), level(b)) })

	revisions := slices.Clone(history)
	slices.Reverse(revisions)

	return &Provider{Frame: frame, Card: Card{v, frame}, Revisions: revisions, Note: note}
}

// Unhealthy returns the objects that are not healthy.
func (p *Provider) Unhealthy() []view.Object {
	return slices.DeleteFunc(slices.Clone(p.Card.Objects), view.Object.IsHealthy)
}

// Healthy returns the number of healthy objects.
func (p *Provider) Healthy() int { return len(p.Card.Objects) - len(p.Unhealthy()) }

// Message returns that of a condition, unless an earlier one has the same.
func (p *Provider) Message(c metav1.Condition) string {
	for _, earlier := range p.Card.Conditions {
		switch {
		case earlier.Type == c.Type:
			return c.Message
		case earlier.Message == c.Message:
			return ""
		}
	}

	return c.Message
}

// Previous returns the number of the revision before the one at an index; 0 for the oldest one.
func (p *Provider) Previous(index int) int {
	if index+1 < len(p.Revisions) {
		return p.Revisions[index+1].Revision
	}

	return 0
}

// level returns how good something is that a page shows: "good", "busy", "bad" or, for a revision that was replaced,
// "past".
func level(of any) string {
	good := true

	switch of := of.(type) {
	case metav1.Condition:
		good = view.IsGood(of)
	case view.Event:
		good = of.Type == "Normal"
	case view.Note:
		if !of.Problem {
			return levelBusy
		}

		good = false
	case view.Object:
		if !of.IsHealthy() && of.Status != status.FailedStatus && of.Status != status.NotFoundStatus {
			return levelBusy
		}

		good = of.IsHealthy()
	case view.Revision:
		switch of.Status {
		case v1alpha2.RevisionDeployed:
		case v1alpha2.RevisionFailed:
			good = false
		case v1alpha2.RevisionSuperseded, v1alpha2.RevisionUninstalled:
			return levelPast
		default:
			return levelBusy
		}
	}

	if good {
		return levelGood
	}

	return levelBad
}

// The levels of what is on a page.
const (
	levelGood = "good"
	levelBusy = "busy"
	levelBad  = "bad"
	levelPast = "past"
)

// helmDescription matches what Helm writes itself. Anything else that another program left in a record may quote
// values.
var helmDescription = regexp.MustCompile(
	`^(Install complete|Upgrade complete|Rollback to \d+|Initial install underway|Preparing upgrade|` +
		`Uninstallation complete|Deletion in progress.*)$`)

// rollbackDescription matches what Capstan writes about a rollback, and in it why it rolled back.
var rollbackDescription = regexp.MustCompile(`^Rollback to \d+: (.+)$`)

// Description returns the log entry of a revision, without what another program may have quoted, and unless the verdict
// or the revision that was rolled back says the same.
func (p *Provider) Description(r view.Revision) string {
	cause := rollbackDescription.ReplaceAllString(r.Description, "$1")
	isSaid := slices.ContainsFunc(p.Revisions, func(other view.Revision) bool {
		return other.Revision < r.Revision && other.Description == cause
	})

	if cause != "" && strings.Contains(p.Card.Verdict.Cause, cause) || cause != r.Description && isSaid {
		return ""
	}

	if r.By == view.ByHelm && !helmDescription.MatchString(r.Description) && r.Description != "" {
		return "not shown, because another program wrote it"
	}

	return r.Description
}
