package view

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
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

// Verdict says what runs, and what becomes of the version that is wanted, as the operator has written it into Ready.
// All that is printed of a provider in one line is this.
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

	switch {
	case !isObserved && !p.GetDeletionTimestamp().IsZero(): // the condition is older than the deletion
		return Verdict{State: Waiting, Text: "being removed"}
	case !isObserved && p.GetStatus().InstalledVersion != nil:
		return Verdict{State: Waiting, Text: *p.GetStatus().InstalledVersion + " is installed; waiting for the operator"}
	case !isObserved:
		return Verdict{State: Waiting, Text: "waiting for the operator"}
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
	v := Verdict{State: Ready, Text: messageOf(ready)}

	if p.GetSpec().Paused || p.GetSpec().Suspend {
		v.State = Stopped
	}

	for _, remark := range remarks {
		if c := meta.FindStatusCondition(p.GetConditions(), remark.condition); c != nil && !IsGood(*c) {
			v.Text += "; " + remark.text
			v.Cause = cmp.Or(v.Cause, messageOf(c))
		}
	}

	return v
}

// unsettled judges a provider that is not ready. Stalled and Reconciling have what Ready says without the cause.
func unsettled(p v1alpha2.Provider, ready *metav1.Condition) Verdict {
	v := Verdict{State: Failing, Text: messageOf(ready)}

	for _, kind := range []string{v1alpha2.StalledCondition, v1alpha2.ReconcilingCondition} {
		c := meta.FindStatusCondition(p.GetConditions(), kind)
		if c == nil || !strings.HasPrefix(v.Text, messageOf(c)) {
			continue
		}

		v.Cause = strings.TrimLeft(strings.TrimPrefix(v.Text, messageOf(c)), ":; ")
		v.Text = messageOf(c)
	}

	switch isDeleted := !p.GetDeletionTimestamp().IsZero(); {
	case isDeleted && ready.Reason != v1alpha2.DeletionBlockedReason:
		v.State = Waiting
	case ready.Reason == v1alpha2.SuspendedReason:
		v.State = Stopped
	case ready.Reason == v1alpha2.ProgressingReason && !meta.IsStatusConditionFalse(
		p.GetConditions(), v1alpha2.ProviderUpgradedCondition), strings.HasPrefix(ready.Reason, "WaitingFor"):
		v.State = Waiting
	}

	return v
}
