package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// State is how urgent it is to look at a provider.
type State string

// The states of a provider. A provider is only waiting while nothing has failed: one whose installation is retried is
// failing.
const (
	Failing State = "failing"
	Waiting State = "waiting"
	Stopped State = "stopped"
	Ready   State = "ready"
)

// States are all states, the worst first.
var States = []State{Failing, Waiting, Stopped, Ready}

// CompareStates orders providers by how urgent they are.
func CompareStates(a, b Provider) int {
	return slices.Index(States, a.Verdict.State) - slices.Index(States, b.Verdict.State)
}

// Verdict says what runs, and what becomes of the version that is wanted. All that is printed of a provider in one line
// is this.
type Verdict struct {
	State State  `json:"state"`
	Text  string `json:"text"`
	// Cause is why something is not as it is wanted; empty if all is.
	Cause string `json:"cause,omitempty"`
}

func (v Verdict) String() string {
	if v.Cause == "" {
		return v.Text
	}

	return v.Text + ": " + v.Cause
}

// VerdictOf judges a provider by its resource alone.
func VerdictOf(p v1alpha2.Provider) Verdict {
	ready := meta.FindStatusCondition(p.GetConditions(), v1alpha2.ReadyCondition)
	isObserved := ready != nil && p.GetStatus().ObservedGeneration == p.GetGeneration()
	isDeleted := !p.GetDeletionTimestamp().IsZero()

	switch {
	case isDeleted && !isObserved: // the condition is older than the deletion
		return Verdict{State: Waiting, Text: "being removed"}
	case isDeleted && ready.Reason == v1alpha2.DeletionBlockedReason:
		return Verdict{State: Failing, Text: "removal is blocked", Cause: messageOf(ready)}
	case isDeleted:
		return Verdict{State: Waiting, Text: "being removed", Cause: messageOf(ready)}
	case !isObserved:
		return Verdict{State: Waiting, Text: phrases(running(p), "waiting for the operator")}
	case v1alpha2.IsReady(p):
		return settled(p, ready)
	}

	return unsettled(p, ready)
}

func messageOf(c *metav1.Condition) string { return strings.TrimSpace(c.Message) }

// remarks are what conditions of a provider that is ready report, which does not keep it from working.
var remarks = []struct{ condition, text string }{
	{v1alpha2.DriftedCondition, "objects differ"},
	{v1alpha2.ChangesPendingCondition, "changes are pending"},
	{v1alpha2.InputsUnavailableCondition, "inputs are unavailable"},
}

// settled judges a provider that is ready.
func settled(p v1alpha2.Provider, ready *metav1.Condition) Verdict {
	spec := p.GetSpec()
	v := Verdict{State: Ready, Text: runningVersion(p) + " is healthy"}

	if spec.Paused {
		v.State, v.Text = Stopped, runningVersion(p)+" is paused"
	}

	if spec.Suspend {
		v.State, v.Text = Stopped, v.Text+", suspended"
	}

	switch {
	case spec.Release != nil && spec.Release.RollbackTo != nil:
		v.Text += fmt.Sprintf(", held at revision %d by a rollback", *spec.Release.RollbackTo)
	case ready.Reason == v1alpha2.ExternalChangeReason:
		v.Text += ", held as another program made it"
		v.Cause = messageOf(ready)
	}

	for _, remark := range remarks {
		if c := meta.FindStatusCondition(p.GetConditions(), remark.condition); c != nil && !IsGood(*c) {
			v.Text += ", " + remark.text
			v.Cause = cmp.Or(v.Cause, messageOf(c))
		}
	}

	return v
}

// unsettled judges a provider that is not ready.
func unsettled(p v1alpha2.Provider, ready *metav1.Condition) Verdict {
	spec, stat := p.GetSpec(), p.GetStatus()
	wanted := cmp.Or(ranges.Only(spec.Version, stat.DesiredVersion), spec.Version)
	runs := running(p)
	v := Verdict{State: Failing, Text: cmp.Or(runs, "not installed"), Cause: messageOf(ready)}
	isWanted := wanted == "" || ranges.IsSame(wanted, runningVersion(p))

	switch failed := failures(p, wanted); {
	case ready.Reason == v1alpha2.SuspendedReason:
		v.State, v.Text = Stopped, v.Text+", suspended"
	case ready.Reason == v1alpha2.UnhealthyReason && runs != "":
		v.Text = runningVersion(p) + " is not healthy"
	case failed > 0:
		v.Text = phrases(runs, wanted+" failed"+times(failed)+next(p))
		v.Cause = strings.TrimPrefix(v.Cause, wanted+" failed: ")
	case ready.Reason == v1alpha2.ProgressingReason && wanted != "" && (runs == "" || !isWanted):
		v.State, v.Text = Waiting, phrases(runs, "applying "+wanted)
	case ready.Reason == v1alpha2.ProgressingReason:
		v.State = Waiting
	default:
		if strings.HasPrefix(ready.Reason, "WaitingFor") {
			v.State = Waiting
		}

		switch {
		case runs == "":
		case isWanted:
			v.Text = phrases(runs, "a change is not applied")
		default:
			v.Text = phrases(runs, wanted+" is not applied")
		}
	}

	return v
}

// phrases joins those phrases that are not empty.
func phrases(runs, more string) string {
	if runs == "" {
		return more
	}

	return runs + "; " + more
}

func times(n int) string {
	switch n {
	case 1:
		return ""
	case 2:
		return " twice"
	}

	return fmt.Sprintf(" %d times", n)
}

// next returns what follows from a failure.
func next(p v1alpha2.Provider) string {
	if meta.IsStatusConditionTrue(p.GetConditions(), v1alpha2.StalledCondition) {
		return ", given up"
	}

	return ", tried again"
}

// running returns what runs; empty if no revision that was healthy is deployed.
func running(p v1alpha2.Provider) string {
	version := runningVersion(p)
	if version == "" {
		return ""
	}

	return version + " runs"
}

// runningVersion returns the version of the newest revision of the release; empty if that is not deployed, or has not
// been healthy yet.
func runningVersion(p v1alpha2.Provider) string {
	history := p.GetStatus().History
	if len(history) == 0 {
		return ptr.Deref(p.GetStatus().InstalledVersion, "")
	}

	newest := history[0]
	if newest.Status != string(state.StatusDeployed) || !ptr.Deref(newest.Healthy, true) {
		return ""
	}

	return cmp.Or(newest.Version, ptr.Deref(p.GetStatus().InstalledVersion, ""))
}

// failures returns how often it has failed to apply the wanted version since that was last asked for.
func failures(p v1alpha2.Provider, wanted string) int {
	var asked *v1alpha2.RevisionRequest

	count := 0

	for _, r := range p.GetStatus().History { // newest first
		if r.Request == nil || !ranges.IsSame(r.Version, wanted) || r.Request.Generation != p.GetGeneration() {
			continue
		}

		if asked == nil {
			asked = r.Request
		}

		if r.Status == string(state.StatusFailed) && *r.Request == *asked {
			count++
		}
	}

	return count
}
