package reconcile

import (
	"context"
	"fmt"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// suspended reports the state of a suspended provider, and changes nothing.
func (r *run) suspended(ctx context.Context) Result {
	const unchanged = "nothing is changed while spec.suspend is true"

	if !r.provider.GetDeletionTimestamp().IsZero() {
		return waiting(v1alpha2.SuspendedReason, "the deletion waits: "+unchanged, noDeadline)
	}

	if result := r.observe(ctx); result.Ends() {
		return result
	}

	_ = r.checkIdentity(ctx) // it decides only what the status may say

	if r.installed.record == nil {
		return Result{Outcome: Idle, Reason: v1alpha2.SuspendedReason, Message: "Not installed, and " + unchanged}
	}

	if result := inOrder(ctx, r.checkHealth, r.correctDrift); result.Ends() {
		return result
	}

	name := fmt.Sprintf("%s %s", v1alpha2.Label(r.provider), r.installed.record.AppVersion)
	if !r.installed.healthy() {
		message := fmt.Sprintf("%s is not healthy: %s; %s", name, r.installed.health.Message(), unchanged)
		return Result{Outcome: Idle, Reason: v1alpha2.SuspendedReason, Message: message}
	}

	return Result{
		Outcome: Ready, Reason: v1alpha2.SuspendedReason, Message: fmt.Sprintf("%s is healthy; %s", name, unchanged),
	}
}
