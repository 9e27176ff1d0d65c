package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Asks describes the version that the resource asks for: an exact one, or a range with the version that was chosen from
// it. It is empty if exactly what is installed is asked for.
func (p Provider) Asks() string {
	isInstalled := func(version string) bool {
		return strings.TrimPrefix(version, "v") == strings.TrimPrefix(p.Version, "v")
	}
	isRange := p.Chosen != p.Wanted

	switch {
	case isRange && p.Chosen != "" && !isInstalled(p.Chosen):
		return cmp.Or(p.Wanted, "the newest version") + ", which is " + p.Chosen
	case isInstalled(p.Wanted):
		return ""
	default:
		return p.Wanted
	}
}

// Note is a remark about what the operator does by itself.
type Note struct {
	Text string
	// Problem is set if a user has to do something about it.
	Problem bool
}

// AutomaticUpgrades describes the automatic upgrade that follows, and the last one unless it has succeeded.
func (p Provider) AutomaticUpgrades() []Note {
	if p.AutomaticUpgrade == nil {
		return nil
	}

	var notes []Note

	if pending := p.AutomaticUpgrade.Pending; pending != nil {
		message := pending.Message
		if pending.Blocked {
			message = "is blocked: " + message
		}

		text := strings.TrimSpace(fmt.Sprintf("automatic upgrade to %s %s", pending.Version, message))
		notes = append(notes, Note{Text: text, Problem: pending.Blocked})
	}

	if last := p.AutomaticUpgrade.Last; last != nil && last.Result != v1alpha2.UpgradeSucceeded {
		text := fmt.Sprintf("automatic upgrade to %s: %s", last.Version, last.Result)
		if last.Message != "" {
			text += ": " + last.Message
		}

		notes = append(notes, Note{Text: text, Problem: last.Result == v1alpha2.UpgradeFailed})
	}

	return notes
}
