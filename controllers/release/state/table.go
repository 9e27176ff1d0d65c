package state

import (
	"fmt"
	"slices"
	"strings"
)

// Row says what follows from a state of a release.
type Row struct {
	State State
	// When the row applies. Of the rows of one state, the first that applies counts.
	When string
	// Action that Next returns.
	Action Action
	// Capstan is what Capstan does.
	Capstan string
	// Ready is the reason of the condition Ready, which is False unless noted.
	Ready string
}

// Reasons of several rows.
const (
	untilHealthy  = "`Progressing`"
	leftAlone     = "`ExternalChange`"
	attemptFailed = "of the failure"
	stalled       = "of the failure, and `Stalled` is True"
)

// When several rows apply.
const (
	always     = "always"
	otherwise  = "otherwise"
	kept       = "nothing was asked for since, and external changes are kept"
	keptAlone  = kept + ", and no action was interrupted"
	backingOff = "the time of the next retry has not come"
	usedUp     = "the retries are used up"
)

// Table returns what follows from each state, by state.
func Table() []Row { return slices.Clone(table) }

var table = []Row{
	{
		Absent, "it existed before, " + kept, Hold,
		"Leaves the release uninstalled.",
		leftAlone,
	},
	{
		Absent, otherwise, Apply,
		"Installs the release.",
		untilHealthy,
	},
	{
		RecordsLost, always, Apply,
		"Adopts the objects with the next revision.",
		untilHealthy,
	},
	{
		Locked, always, Wait,
		"Waits for the other action to end, at most until the lock times out.",
		"`Progressing`; the message names the helm command that ends the lock",
	},
	{
		Interrupted, "it was a rollback, its target may still be rolled back to, and the desired state has failed", Rollback,
		"Marks the revision failed and rolls back again.",
		attemptFailed,
	},
	{
		Interrupted, otherwise, Apply,
		"Marks the revision failed and upgrades to the desired state.",
		untilHealthy,
	},
	{
		Uninstalled, kept, Hold,
		"Leaves the release uninstalled.",
		leftAlone,
	},
	{
		Uninstalled, otherwise, Apply,
		"Installs the release again, as its next revision.",
		untilHealthy,
	},
	{
		Corrupt, always, Apply,
		"Upgrades to the desired state; the unreadable revision stays.",
		untilHealthy,
	},
	{
		Unconfirmed, always, Apply,
		"Upgrades to the desired state. Until then it changes nothing by this record.",
		untilHealthy,
	},
	{
		Unmanaged, keptAlone, Hold,
		"Keeps the revision of the other program.",
		"`ExternalChange`; True if the objects are healthy",
	},
	{
		Unmanaged, otherwise, Apply,
		"Upgrades to the desired state.",
		untilHealthy,
	},
	{
		OutOfSync, always, Apply,
		"Upgrades to the desired state.",
		untilHealthy,
	},
	{
		Failed, "a revision may be rolled back to, rollbacks are enabled, and the failure is not temporary", Rollback,
		"Rolls back to the last healthy revision that it may return to.",
		attemptFailed,
	},
	{
		Failed, backingOff, Wait,
		"Waits, twice as long each time.",
		attemptFailed,
	},
	{
		Failed, usedUp, Stop,
		"Leaves the release as it is.",
		stalled,
	},
	{
		Failed, otherwise + ", and at once if it was interrupted or the user requests it", Apply,
		"Tries the desired state again.",
		untilHealthy,
	},
	{
		RolledBack, "a wave of the rollback is left and in time, or " + backingOff, Wait,
		"Applies what is left, then waits; the earlier revision runs.",
		attemptFailed,
	},
	{
		RolledBack, usedUp, Stop,
		"Keeps the earlier revision running.",
		stalled,
	},
	{
		RolledBack, otherwise + ", and at once if the user requests it", Apply,
		"Tries the desired state again.",
		untilHealthy,
	},
	{
		RollbackFailed, backingOff, Wait,
		"Waits, twice as long each time.",
		attemptFailed,
	},
	{
		RollbackFailed, "its target is gone, or may not be rolled back to any more, and " + usedUp, Stop,
		"Leaves the release as it is.",
		stalled,
	},
	{
		RollbackFailed, "its target is gone, or may not be rolled back to any more", Apply,
		"Tries the desired state again.",
		untilHealthy,
	},
	{
		RollbackFailed, otherwise + ", and at once if the user requests it", Rollback,
		"Rolls back again.",
		attemptFailed,
	},
	{
		InSync, always, None,
		"Marks the revision healthy once all objects are, and failed after the timeout.",
		"`Progressing`; then True",
	},
}

// MarkdownTable returns the table for the documentation.
func MarkdownTable() string {
	var b strings.Builder

	b.WriteString("| State | When | Action | What Capstan does | Reason of Ready |\n")
	b.WriteString("| --- | --- | --- | --- | --- |\n")

	for _, row := range table {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.State, row.When, row.Action, row.Capstan, row.Ready)
	}

	return b.String()
}
