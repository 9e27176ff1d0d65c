package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// conditions are those of a resource while its status is written. A condition is as old as its status, reason and
// message, so the age of a problem is known without any state in memory.
type conditions struct {
	list       []metav1.Condition
	generation int64
	now        time.Time
}

func (c *conditions) markTrue(name, reason, format string, args ...any) {
	c.set(name, metav1.ConditionTrue, reason, fmt.Sprintf(format, args...))
}

func (c *conditions) markFalse(name, reason, format string, args ...any) {
	c.set(name, metav1.ConditionFalse, reason, fmt.Sprintf(format, args...))
}

func (c *conditions) markUnknown(name, reason, format string, args ...any) {
	c.set(name, metav1.ConditionUnknown, reason, fmt.Sprintf(format, args...))
}

// set sets a condition. Messages quote servers and components, so they lose what would control a terminal.
func (c *conditions) set(name string, status metav1.ConditionStatus, reason, message string) {
	condition := metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: cut(object.Printable(message)),
		ObservedGeneration: c.generation, LastTransitionTime: metav1.NewTime(c.now.UTC().Truncate(time.Second)),
	}

	before := c.get(name)
	if before.Status == status && before.Reason == reason && before.Message == condition.Message {
		condition.LastTransitionTime = before.LastTransitionTime
	}

	c.remove(name)
	c.list = append(c.list, condition)
	slices.SortFunc(c.list, func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Type, b.Type))
	})
}

// rank returns the place of a condition in the list: the ones that summarize the others come first.
func rank(c metav1.Condition) int {
	switch c.Type {
	case v1alpha2.StalledCondition:
		return 0
	case v1alpha2.ReconcilingCondition:
		return 1
	case v1alpha2.ReadyCondition:
		return 2
	}

	return 3
}

// cut returns a message that is as long as the API allows.
func cut(message string) string {
	const most, end = 32768, "..."
	if len(message) <= most {
		return message
	}

	return strings.ToValidUTF8(message[:most-len(end)], "") + end
}

func (c *conditions) remove(names ...string) {
	c.list = slices.DeleteFunc(c.list, func(condition metav1.Condition) bool {
		return slices.Contains(names, condition.Type)
	})
}

// get returns a condition; zero if there is none.
func (c *conditions) get(name string) metav1.Condition { return v1alpha2.FindCondition(c.list, name) }

// maxReady bounds the message of Ready, which lists show.
const maxReady = 2048

// end writes Ready, Reconciling and Stalled. The cause is only in Ready, and in the condition of a check. Overdue is
// set if a wait takes longer than it may.
func (c *conditions) end(result Result, overdue bool) {
	switch result.Condition {
	case "":
	case v1alpha2.ProviderInstalledCondition:
		c.markFalse(result.Condition, result.Reason, "%s", result.short())
	default:
		c.markFalse(result.Condition, result.Reason, "%s", cmp.Or(result.Cause, result.text()))
	}

	ready := result.within(maxReady)

	if result.Outcome == Ready {
		c.markTrue(v1alpha2.ReadyCondition, result.Reason, "%s", ready)
	} else {
		c.markFalse(v1alpha2.ReadyCondition, result.Reason, "%s", ready)
	}

	switch {
	case result.Outcome == Stalled, overdue:
		c.remove(v1alpha2.ReconcilingCondition)
		c.markTrue(v1alpha2.StalledCondition, result.Reason, "%s", result.short())
	case result.Outcome == Waiting, result.Outcome == Retrying:
		c.remove(v1alpha2.StalledCondition)
		c.markTrue(v1alpha2.ReconcilingCondition, result.Reason, "%s", result.short())
	default:
		c.remove(v1alpha2.ReconcilingCondition, v1alpha2.StalledCondition)
	}
}

// backdate makes a condition as old as the problem that it reports.
func (c *conditions) backdate(name string, since time.Time) {
	for i := range c.list {
		if c.list[i].Type == name {
			c.list[i].LastTransitionTime = metav1.NewTime(since.UTC().Truncate(time.Second))
		}
	}
}

// waitingSince returns since when a resource has been waiting for the same reason, whatever the message; now if
// it has not been waiting for it.
func (c *conditions) waitingSince(reason string) time.Time {
	for _, condition := range c.list {
		if isWait(condition) && condition.Reason == reason {
			return condition.LastTransitionTime.Time
		}
	}

	return c.now
}

// keepWaitingSince makes the conditions of a wait as old as the wait. They would otherwise be as old as their message.
func (c *conditions) keepWaitingSince(since time.Time) {
	for i := range c.list {
		if isWait(c.list[i]) {
			c.list[i].LastTransitionTime = metav1.NewTime(since.Truncate(time.Second))
		}
	}
}

// isWait reports whether a condition is one of those that a waiting resource has.
func isWait(c metav1.Condition) bool {
	return c.Type == v1alpha2.ReconcilingCondition || c.Type == v1alpha2.StalledCondition
}
