package reconcile

import (
	"context"
	"errors"

	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// checkGates makes sure that the plan may be applied: its contract fits the other providers', its
// variables have values, and the APIs that it needs are served. Core's health is awaited only after
// the CRDs, because these take a while to be served.
func (r *run) checkGates(ctx context.Context) Result {
	defer r.Metrics.TimeStep(r.Type, metrics.StepPreflight)()

	if !r.applies() {
		return Result{}
	}

	err := r.Preflight.Installation(ctx, preflight.Input{
		Provider:         r.provider,
		Mapper:           r.target.Client.RESTMapper(),
		Contract:         r.plan.Chart.Contract(),
		RequiredKinds:    r.plan.Chart.RequiredKinds(),
		MissingVariables: r.plan.MissingVariables,
	})
	if err != nil {
		return failed(err, applying)
	}

	if !r.needsCore() {
		return Result{}
	}

	err = r.Preflight.CoreReady(ctx, r.provider)
	if core := new(preflight.Error); errors.As(err, &core) && core.AllowCRDs {
		r.coreProblem = core
		return Result{}
	}

	return failed(err, applying)
}

// needsCore reports whether core must be healthy before the plan is applied: for a first install, and
// for another contract.
func (r *run) needsCore() bool {
	if len(r.installed.history.Revisions) == 0 {
		return true
	}

	installed := r.provider.GetStatus().Contract

	return installed != nil && *installed != r.plan.Chart.Contract()
}

// waitForCore ends the change while core is not healthy and the plan needs it to be. What it lets pass
// has passed all gates.
func (r *run) waitForCore(context.Context) Result {
	if r.coreProblem != nil {
		return failed(r.coreProblem, applying)
	}

	if !r.applies() && r.state.State != state.InSync {
		return Result{}
	}

	r.passed = true
	status := r.provider.GetStatus()
	status.Contract = nil

	if contract := r.plan.Chart.Contract(); contract != "" {
		status.Contract = &contract
	}

	return Result{}
}
