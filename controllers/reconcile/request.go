package reconcile

import (
	"context"

	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// asksAgain reports whether the resource asks for something since the newest revision that records a
// request. As long as there is none, the status tells.
func (r *run) asksAgain() bool {
	history := r.installed.history

	last, recorded := history.LastRequest()
	if !recorded {
		return r.policy.Requested || r.policy.SpecChanged && len(history.Revisions) > 0
	}

	return last.Request != plan.Asked(r.provider)
}

// changePolicy returns the policy for the change. A failed revision that has become healthy after all is
// applied once more, which changes nothing and records the success.
func (r *run) changePolicy() state.Policy {
	policy := r.policy
	policy.Requested = r.asksAgain() || r.recovered()

	return policy
}

// recovered reports whether a failed revision has become healthy after all.
func (r *run) recovered() bool {
	revision := r.installed.revision

	unhealthy := revision.Failure == state.FailureUnhealthy || revision.Failure == state.FailureFinal

	return revision.Ours() && revision.Status == state.StatusFailed && unhealthy && r.installed.healthy()
}

// markHandled records with the newest revision that the resource asks for nothing else. What changes
// later although the resource does not is then known not to be a request.
func (r *run) markHandled(ctx context.Context) Result {
	revision, asked := r.installed.revision, plan.Asked(r.provider)

	handled := r.decision.Action == state.None || r.decision.Action == state.Hold
	if !handled || revision.Number == 0 || revision.Request == asked {
		return Result{}
	}

	return r.marked(r.target.Releases.MarkRequest(ctx, r.installed.history.Release, revision, asked))
}

// marked notes the resource version of the newest revision after its labels were changed.
func (r *run) marked(resourceVersion string, err error) Result {
	if err == nil {
		r.installed.revision.ResourceVersion = resourceVersion
	}

	return failed(err, applying)
}
