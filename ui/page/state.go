package page

import (
	"cmp"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
)

// The states of a provider on the overview, as they are in its URL. The worst is first.
const (
	stateFailing     = "failing"
	stateProgressing = "progressing"
	stateStopped     = "stopped"
	stateReady       = "ready"
)

// states are all states in the order of their cards.
var states = []string{stateFailing, stateProgressing, stateStopped, stateReady}

// stateOf summarizes the conditions of a provider. A provider is only progressing while nothing has failed: one whose
// installation is retried is failing.
func stateOf(v facts.Provider) string {
	ready := v.Condition(v1alpha2.ReadyCondition)

	switch {
	case v.Is(v1alpha2.StalledCondition):
		return stateFailing
	case v.Ready == "Ready" && (v.Paused || v.Suspended):
		return stateStopped
	case v.Ready == "Ready":
		return stateReady
	case ready == nil, ready.Reason == v1alpha2.ProgressingReason, strings.HasPrefix(ready.Reason, "WaitingFor"):
		return stateProgressing
	default:
		return stateFailing
	}
}

// stateText returns a state with its reason, as a word or two.
func stateText(v facts.Provider) string {
	switch {
	case v.Suspended && v.Ready == "Ready":
		return "Suspended"
	case v.Paused && v.Ready == "Ready":
		return "Paused"
	default:
		return v.Ready
	}
}

// waitsFor returns what a provider waits for, or why it fails; empty if neither. Also a provider that is ready may wait
// before it changes.
func waitsFor(v facts.Provider) string {
	for _, conditionType := range []string{
		v1alpha2.StalledCondition, v1alpha2.PreflightCheckCondition, v1alpha2.ReadyCondition,
	} {
		c := v.Condition(conditionType)
		if c != nil && !facts.IsGood(*c) {
			return cmp.Or(strings.TrimSpace(c.Message), c.Reason)
		}
	}

	if v.Condition(v1alpha2.ReadyCondition) == nil {
		return "the operator has not seen the resource yet"
	}

	return ""
}
