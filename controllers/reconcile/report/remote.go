package report

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	// quickPoll is how soon a resource in a remote cluster is looked at again while something is in progress there, and
	// quickTime how long that may take before it is looked at less and less often.
	quickPoll = time.Second
	quickTime = 2 * time.Minute
	// slowPoll is the time between looks from which on Ready says when the last one was.
	slowPoll = 10 * time.Second
	// slowing is how many times longer something has been in progress than the time between two looks then.
	slowing = 10
)

// pollAfter returns when a remote cluster is looked at again in which something has been in progress for some time.
func pollAfter(age, interval time.Duration) time.Duration {
	if age < quickTime {
		return min(quickPoll, interval)
	}

	return min(age/slowing, interval)
}

// nextLook returns when a remote cluster is looked at again: nothing there wakes a resource.
func nextLook(in Input, result Result, ready metav1.Condition) time.Duration {
	if result.Outcome != Waiting {
		return in.Remote.Next
	}

	return min(in.Remote.Next, pollAfter(in.Now.Sub(ready.LastTransitionTime.Time), in.Remote.Interval))
}

// lasts reports whether Ready says when the cluster was looked at: it is not about to be looked at again.
func lasts(in Input, result Result, ready metav1.Condition) bool {
	switch {
	case !in.isRemote(), result.Outcome == Retrying:
		return false
	case result.Outcome == Waiting:
		return pollAfter(in.Now.Sub(ready.LastTransitionTime.Time), in.Remote.Interval) >= slowPoll
	}

	return true
}

// asOf separates the message of Ready from the time of the last look at a remote cluster.
const asOf = ", as of "

// addAsOf adds to the message of Ready when the cluster was looked at. It is not a change of the condition.
func addAsOf(list []metav1.Condition, now time.Time) {
	for i := range list {
		if list[i].Type == v1alpha2.ReadyCondition {
			list[i].Message += asOf + now.UTC().Format(time.RFC3339)
		}
	}
}

// withoutAsOf returns conditions without what addAsOf has added.
func withoutAsOf(list []metav1.Condition) []metav1.Condition {
	list = slices.Clone(list)

	for i := range list {
		at := strings.LastIndex(list[i].Message, asOf)
		if at < 0 {
			continue
		}

		if _, err := time.Parse(time.RFC3339, list[i].Message[at+len(asOf):]); err == nil {
			list[i].Message = list[i].Message[:at]
		}
	}

	return list
}
