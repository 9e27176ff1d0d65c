package offers

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
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
	text := fmt.Sprintf("Upgrading from %s to %s", s.From, s.Version)
	if !s.Until.IsZero() {
		text += ", within the window until " + format(s.Until)
	}

	return text
}

// Started returns the upgrade that starts now, after a revision.
func (s Selection) Started(after int, now time.Time) v1alpha2.AutomaticUpgrade {
	return v1alpha2.AutomaticUpgrade{
		Version: s.Version, Revision: after + 1, Time: metav1.NewTime(now), Result: v1alpha2.UpgradeProgressing,
	}
}

// bounded returns a text for the status.
func bounded(text string) string {
	const maxLength = 1000
	return object.OneLine(object.Printable(text), maxLength)
}

// format returns a time for users.
func format(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
