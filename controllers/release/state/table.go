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
	// User is what the user sees of it, in the conditions of the resource.
	User string
}

const (
	always    = "always"
	otherwise = "otherwise"
)

const (
	kept       = "the desired state is that of Capstan's last revision, and external changes are kept"
	backingOff = "the time of the next retry has not come"
	usedUp     = "the retries are used up"
)

// Table returns what follows from each state, by state.
func Table() []Row { return slices.Clone(table) }

var table = []Row{
	{
		Absent, "it existed before, nothing changed or was requested since, and external changes are kept", Hold,
		"Leaves the release uninstalled.",
		"Ready is False with reason ExternalChange; the message explains how to reinstall or to accept it.",
	},
	{
		Absent, otherwise, Apply,
		"Installs the release.",
		"Ready is False with reason Progressing until the objects are healthy.",
	},
	{
		Locked, always, Wait,
		"Waits for the other action to end, at most until the lock times out.",
		"Ready is False with reason Progressing; the message names the helm command that ends the lock at once.",
	},
	{
		Interrupted, "it was a rollback, its target exists, and the desired state has failed", Rollback,
		"Marks the revision failed and rolls back again.",
		"Ready is False with the reason of the failed attempt.",
	},
	{
		Interrupted, otherwise, Apply,
		"Marks the revision failed and upgrades to the desired state.",
		"Ready is False with reason Progressing until the objects are healthy.",
	},
	{
		Uninstalled, kept, Hold,
		"Leaves the release uninstalled.",
		"Ready has reason ExternalChange; the message explains how to undo or to accept it.",
	},
	{
		Uninstalled, otherwise, Apply,
		"Installs the release again, as its next revision.",
		"Ready is False with reason Progressing until the objects are healthy.",
	},
	{
		Corrupt, always, Apply,
		"Upgrades to the desired state; the unreadable revision stays in the history.",
		"Ready is False with reason Progressing until the objects are healthy.",
	},
	{
		Unmanaged, kept, Hold,
		"Keeps the revision of the other program and corrects no drift.",
		"Ready has reason ExternalChange; the message explains how to undo or to accept it.",
	},
	{
		Unmanaged, otherwise, Apply,
		"Upgrades to the desired state, and so takes the release over.",
		"Ready is False with reason Progressing until the objects are healthy.",
	},
	{
		OutOfSync, always, Apply,
		"Upgrades to the desired state.",
		"Ready is False with reason Progressing until the objects are healthy.",
	},
	{
		Failed, "a healthy revision exists, rollbacks are enabled, and the failure is not temporary", Rollback,
		"Rolls back to the last healthy revision.",
		"Ready is False with the reason of the failed attempt; the history shows it as the reason of the rollback.",
	},
	{
		Failed, backingOff, Wait,
		"Waits between attempts, twice as long each time.",
		"Ready is False with the reason of the failed attempt.",
	},
	{
		Failed, usedUp, Stop,
		"Leaves the release as it is.",
		"Ready is False and Stalled is True; the message explains how to request another attempt.",
	},
	{
		Failed, otherwise + ", and at once if it was interrupted or the user requests it", Apply,
		"Tries the desired state again.",
		"Ready is False with the reason of the failed attempt until the objects are healthy.",
	},
	{
		RolledBack, backingOff, Wait,
		"Waits between attempts, twice as long each time; the earlier revision runs.",
		"Ready is False with the reason of the failed attempt; the message names the version that runs.",
	},
	{
		RolledBack, usedUp, Stop,
		"Keeps the earlier revision running.",
		"Ready is False and Stalled is True; the message explains how to request another attempt.",
	},
	{
		RolledBack, otherwise + ", and at once if the user requests it", Apply,
		"Tries the desired state again.",
		"Ready is False with the reason of the failed attempt until the objects are healthy.",
	},
	{
		RollbackFailed, backingOff, Wait,
		"Waits between attempts, twice as long each time.",
		"Ready is False with the reason of the failed rollback.",
	},
	{
		RollbackFailed, usedUp + ", or the target of the rollback is gone", Stop,
		"Leaves the release as it is.",
		"Ready is False and Stalled is True; the message explains how to request another attempt.",
	},
	{
		RollbackFailed, otherwise + ", and at once if the user requests it", Rollback,
		"Rolls back again.",
		"Ready is False with the reason of the failed rollback.",
	},
	{
		InSync, always, None,
		"Watches the health of the objects and corrects drift.",
		"Ready is True once the objects are healthy.",
	},
}

// MarkdownTable returns the table for the documentation.
func MarkdownTable() string {
	var b strings.Builder

	b.WriteString("| State | When | Action | What Capstan does | What you see |\n")
	b.WriteString("| --- | --- | --- | --- | --- |\n")

	for _, row := range table {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.State, row.When, row.Action, row.Capstan, row.User)
	}

	return b.String()
}
