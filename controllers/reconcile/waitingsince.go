package reconcile

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// waitingSince returns since when a resource has been waiting for the same reason, whatever the message; now if
// it has not been waiting for it.
func waitingSince(conditions []metav1.Condition, reason string, now time.Time) time.Time {
	for _, c := range conditions {
		if isWait(c) && c.Reason == reason {
			return c.LastTransitionTime.Time
		}
	}

	return now
}

// keepWaitingSince makes the conditions of a wait as old as the wait. They would otherwise be as old as their message.
func keepWaitingSince(conditions []metav1.Condition, since time.Time) {
	for i := range conditions {
		if isWait(conditions[i]) {
			conditions[i].LastTransitionTime = metav1.NewTime(since.Truncate(time.Second))
		}
	}
}

// isWait reports whether a condition is one of those that a waiting resource has.
func isWait(c metav1.Condition) bool {
	return c.Type == v1alpha2.ReconcilingCondition || c.Type == v1alpha2.StalledCondition
}
