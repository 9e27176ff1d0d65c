package autoupgrade

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// Selection is the version that a resource asks for.
type Selection struct {
	// Version is one in the range; empty if the range has yet to be resolved, or there is none.
	Version string
	// Automatic is the automatic upgrade that the version results from, for state.Request; empty if it does not.
	Automatic string
	// From is the version to upgrade from if an automatic upgrade starts now; empty otherwise.
	From string
	// Until is the end of the window; zero if there is none.
	Until time.Time
	// Pending is the upgrade that follows, and what it waits for; nil for none.
	Pending *v1alpha2.PendingUpgrade
}

// Starts reports whether an automatic upgrade starts now.
func (s Selection) Starts() bool { return s.From != "" }

// String describes an upgrade that starts, for an event.
func (s Selection) String() string {
	text := fmt.Sprintf("%s → %s", s.From, s.Version)
	if !s.Until.IsZero() {
		text += ", within the window until " + format(s.Until)
	}

	return text
}

// Check makes sure that a plan with a version and a contract is what was selected by what the source said earlier. The
// error is a *preflight.Error.
func (s Selection) Check(version, contract, installed string) error {
	if version == s.Version && contract == installed {
		return nil
	}

	return &preflight.Error{Reason: v1alpha2.CAPIVersionIncompatibilityReason, Message: fmt.Sprintf(
		"the source has offered %s with the contract %s of the installed version, and now has %s with the contract %s",
		s.Version, installed, version, contract)}
}

// Started returns the upgrade that starts now, after a revision.
func (s Selection) Started(after int, now time.Time) v1alpha2.AutomaticUpgrade {
	return v1alpha2.AutomaticUpgrade{
		Version: s.Version, Revision: int64(after) + 1, Time: metav1.NewTime(now), Result: v1alpha2.UpgradeProgressing,
	}
}
