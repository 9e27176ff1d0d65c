package model

import (
	"fmt"
	"strings"
)

// Property is something that is always so.
type Property string

// The properties.
const (
	// Asked: a revision is created from what the resource asks for, once. Neither a restart, nor other flags
	// of the operator, nor an edit of the Secret with variables makes another one.
	Asked Property = "only what was asked for is installed"
	// Target: an automatic rollback returns to the newest revision that was healthy, not paused unless
	// that is wanted, and that can convert the stored objects.
	Target Property = "a rollback is as careful as an upgrade"
	// Convertible: no revision runs managers that cannot convert the stored objects.
	Convertible Property = "managers can convert what is stored"
	// Passing: an error that goes away by itself does not fail a revision before its timeout.
	Passing Property = "a passing error does not fail a revision"
	// Hold: what other programs did to the release stays until the resource changes.
	Hold Property = "a user's change stays until the resource changes"

	// These are so once nothing happens any more.

	// Converges: what the resource asks for is installed if it can be, and else what ran before.
	Converges Property = "the provider ends as wanted"
	// History: exactly one revision is deployed and none pending.
	History Property = "one revision is deployed, none is pending"
	// Objects: the objects are exactly those of the deployed revision.
	Objects Property = "the objects are those of the revision"
	// Contract: status.contract is that of the deployed revision.
	Contract Property = "the contract is the installed one"
	// Ready: Ready is True if what is wanted, or what another program has put in its place, is installed and healthy, and
	// Stalled is True if only a user can help.
	Ready Property = "the conditions tell the truth"
	// Removal: nothing is left of a removed provider.
	Removal Property = "removal leaves nothing"
)

// Violation is an error about a property that does not hold.
type Violation struct {
	Property Property
	Text     string
	Snapshot Snapshot
}

func violates(property Property, format string, args ...any) *Violation {
	return &Violation{Property: property, Text: fmt.Sprintf(format, args...)}
}

func (v *Violation) Error() string {
	return fmt.Sprintf("not true: %s: %s\n%s", v.Property, v.Text, &v.Snapshot)
}

// String lists what can be seen, a line for each revision.
func (s *Snapshot) String() string {
	var b strings.Builder

	for _, r := range s.Records {
		fmt.Fprintf(&b, "revision %d: %s, %+v", r.Number, r.Status, r.Content)

		if r.RollbackTo != 0 {
			fmt.Fprintf(&b, ", rollback to %d", r.RollbackTo)
		}

		if r.Failure != "" {
			fmt.Fprintf(&b, ", %s", r.Failure)
		}

		if r.Healthy {
			b.WriteString(", was healthy")
		}

		if !r.Ours() {
			b.WriteString(", by another program")
		}

		b.WriteString("\n")
	}

	fmt.Fprintf(&b, "objects %v; stored %v; contract %q; %s",
		s.Objects, s.Stored, s.Contract, s.Now.Format("15:04:05"))

	return b.String()
}
