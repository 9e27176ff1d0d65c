package reconcile

import (
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/conditions"

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

// poll returns when a resource comes back. In a remote cluster, nothing wakes it.
func (r *run) poll(result Result, back ctrl.Result, now time.Time) ctrl.Result {
	if r.target == nil || !r.target.Remote {
		return back
	}

	after := r.target.NextPoll(now, r.RemoteInterval)
	lasts := result.Outcome != Retrying

	ready := conditions.Get(r.provider, v1alpha2.ReadyCondition)
	if result.Outcome == Waiting && ready != nil {
		soon := pollAfter(now.Sub(ready.LastTransitionTime.Time), r.RemoteInterval)
		after, lasts = min(after, soon), soon >= slowPoll
	}

	if lasts && r.status != nil {
		r.status.asOf = now
	}

	if after <= quickPoll {
		r.target.Expire()
	}

	if back.RequeueAfter > 0 {
		after = min(after, back.RequeueAfter)
	}

	return ctrl.Result{RequeueAfter: after}
}

// asOf separates the message of Ready from the time of the last look at a remote cluster.
const asOf = ", as of "

// writeAsOf adds to the message of Ready when the cluster was looked at. It is not a change of the condition.
func writeAsOf(provider v1alpha2.Provider, now time.Time) {
	all := provider.GetConditions()
	for i := range all {
		if all[i].Type == v1alpha2.ReadyCondition {
			all[i].Message += asOf + now.UTC().Format(time.RFC3339)
		}
	}
}

// removeAsOf removes what writeAsOf has added.
func removeAsOf(provider v1alpha2.Provider) {
	all := provider.GetConditions()
	for i := range all {
		message, at, found := cutLast(all[i].Message, asOf)
		if _, err := time.Parse(time.RFC3339, at); found && err == nil {
			all[i].Message = message
		}
	}
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}

	return text[:at], text[at+len(separator):], true
}
