package view

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Asks describes the version that the resource asks for: an exact one, or a range with the version that was chosen from
// it. It is empty if what is installed is asked for.
func (p Provider) Asks() string {
	isInstalled := func(version string) bool {
		return strings.TrimPrefix(version, "v") == strings.TrimPrefix(p.Version, "v")
	}
	isRange := p.Chosen != p.Wanted

	switch {
	case isRange && p.Chosen != "" && !isInstalled(p.Chosen):
		return cmp.Or(p.Wanted, "the newest version") + ", which is " + p.Chosen
	case isInstalled(p.Wanted), isRange && isInstalled(p.Chosen):
		return ""
	default:
		return p.Wanted
	}
}

// Range returns the range that the installed version was chosen from; empty for none.
func (p Provider) Range() string {
	if p.Version == "" || p.Chosen != p.Version || p.Chosen == p.Wanted {
		return ""
	}

	return p.Wanted
}

// Note is a remark about what the operator does by itself, or about the spec.
type Note struct {
	Text string
	// Problem is set if a user has to do something about it.
	Problem bool
}

// policy describes which automatic upgrades there will be, and when; empty for none.
func (p Provider) policy() string {
	policy := p.UpgradePolicy
	if policy == nil || policy.Mode == "" || policy.Mode == v1alpha2.UpgradeManual {
		return ""
	}

	text := fmt.Sprintf("automatic upgrades: %s", policy.Mode)
	if w := policy.Window; w != nil {
		text += fmt.Sprintf(", for %s at \"%s\" %s", duration.HumanDuration(w.Duration.Duration), w.Schedule,
			cmp.Or(w.TimeZone, "UTC"))
	}

	return text
}

// Notes describe the parts of the spec that have no effect, the automatic upgrade that follows, or when there can be
// one, and the last one unless it has succeeded.
func (p Provider) Notes() []Note {
	var notes []Note

	for _, text := range p.Ignored {
		notes = append(notes, Note{Text: text, Problem: true})
	}

	if p.AutomaticUpgrade == nil || p.AutomaticUpgrade.Pending == nil {
		if policy := p.policy(); policy != "" {
			notes = append(notes, Note{Text: policy})
		}
	}

	if p.AutomaticUpgrade == nil {
		return notes
	}

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
