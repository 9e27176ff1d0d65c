package ui

import (
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
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
func stateOf(v view.Provider) string {
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
func stateText(v view.Provider) string {
	switch {
	case v.Suspended && v.Ready == "Ready":
		return "Suspended"
	case v.Paused && v.Ready == "Ready":
		return "Paused"
	default:
		return v.Ready
	}
}
