package ui

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// newHistory returns the history of a release, newest first. The views are oldest first.
func newHistory(frame Frame, v view.Provider, revisions []view.Revision, note string) History {
	h := History{Note: note}

	for i, r := range slices.Backward(revisions) {
		item := Revision{
			Level:       revisionLevel(r),
			Number:      strconv.Itoa(r.Revision),
			Version:     r.Version,
			Status:      r.Status,
			Age:         frame.age(r.Updated),
			Time:        r.Updated.UTC().Format(time.RFC3339),
			By:          r.By,
			Reason:      r.Reason,
			Health:      revisionHealth(r),
			Digest:      view.ShortDigest(r.Digest),
			Description: description(r),
		}

		if current := i == len(revisions)-1; !current {
			item.Command = command(v, "diff", "--revision", item.Number)
		}

		if i > 0 {
			item.ComparePath = frame.Base + comparePath(v, revisions[i-1].Revision, r.Revision)
		}

		h.Revisions = append(h.Revisions, item)
	}

	return h
}

func revisionLevel(r view.Revision) string {
	switch state.Status(r.Status) {
	case state.StatusDeployed:
		return levelGood
	case state.StatusFailed:
		return levelBad
	case state.StatusSuperseded, state.StatusUninstalled:
		return levelPast
	default:
		return levelBusy
	}
}

// revisionHealth returns whether a revision became healthy, in words; empty if that is unknown.
func revisionHealth(r view.Revision) string {
	switch r.Health() {
	case "yes":
		return "was healthy"
	case "no":
		return "was not healthy"
	default:
		return ""
	}
}

// helmDescription matches what Helm writes itself. Anything else that another program left in a record may quote
// values.
var helmDescription = regexp.MustCompile(
	`^(Install complete|Upgrade complete|Rollback to \d+|Initial install underway|Preparing upgrade|` +
		`Uninstallation complete|Deletion in progress.*)$`)

// description returns the log entry of a revision, without what another program may have quoted.
func description(r view.Revision) string {
	if r.By == view.ByHelm && !helmDescription.MatchString(r.Description) && r.Description != "" {
		return "not shown, because another program wrote it"
	}

	return r.Description
}
