package model

import (
	"math"
	"time"

	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// fate is what becomes of a request.
type fate int

const (
	passes      fate = iota
	failsBefore      // it has no effect, and the process gets an error
	failsAfter       // it has an effect, and the process gets an error
)

// request is a request that a process makes.
type request struct {
	// send is its effect. It reports whether the API server accepts it.
	send func() bool
	// then is what the process does once it knows of the effect; nil for nothing.
	then func()
	// failed are the requests that follow instead of the planned ones if there was an error. If it is nil, the step has
	// failed for a passing reason.
	failed func(refused bool) []request
}

// process is one of the operator's processes.
type process struct {
	name   string
	frozen bool
	// lost is set once another process has become the leader.
	lost bool

	// reconcile is the one in progress, and plan has the requests of its step that are still to be made.
	reconcile *reconcile
	plan      []request
	// idle is set after there was nothing to do. wake is when there may be; zero if
	// only a change brings it back.
	idle bool
	wake time.Time
	// stalled is set if what is wanted cannot be installed.
	stalled bool
}

// restart ends the process with all that it remembers, and starts it again.
func (p *process) restart() { *p = process{name: p.name} }

// proceed makes the next request. The leader decides on the next step once it has taken the last one.
func (p *process) proceed(w *World, f fate) {
	if p.lost && w.defect != WritesWithoutLease {
		p.restart() // it exits before it sends anything
	}

	if len(p.plan) == 0 {
		if p == w.leader && f == passes && (w.news || !p.idle) {
			p.decide(w)
		}

		return
	}

	next := p.plan[0]
	p.plan = p.plan[1:]

	if p.lost || p != w.leader {
		w.report(violates(Fenced, "the %s process makes a request", p.name))
	}

	p.reconcile.wrote = true
	p.send(next, f)
}

// send makes a request, and follows its result.
func (p *process) send(next request, f fate) {
	accepted := true
	if f != failsBefore {
		accepted = next.send()
	}

	switch failed := f != passes || !accepted; {
	case failed && next.failed != nil:
		p.plan = next.failed(!accepted)
	case failed:
		p.plan = nil
		p.reconcile.result = report.Result{Outcome: report.Retrying, Message: "a request has failed"}
	case next.then != nil:
		next.then()
	}
}

// digest identifies a content.
func digest(c Content) string {
	paused := byte('-')
	if c.Paused {
		paused = 'p'
	}

	return string([]byte{byte('0' + c.Secret), byte('0' + c.Registry), paused}) + c.Version
}

// reconcile is one reconcile of the operator. Its reader and writer are those of the model, and what it decides and
// reports is the operator's.
type reconcile struct {
	*World

	process *process
	pass    decide.Pass
	// step is the one that is being taken, and result is how it ends. begun and finished are set after the first and the
	// last one.
	step            decide.Step
	result          report.Result
	begun, finished bool
	// wrote is set after a request, and again if the reconcile is tried again. tried is set once the change began.
	wrote, again, tried bool

	resource resource
	content  Content
	policy   state.Policy

	// What was read of the release: stale is set if it has changed since, and installed if there is a newest revision.
	history          state.History
	newest           Record
	installed, stale bool
	health           report.Health
	// compared is set once objects were compared, and lost if one is missing since.
	compared, lost bool

	crdsDiffer bool
	release    decide.Release
	// applied is set once a revision was created, and failure is why that has failed.
	applied bool
	failure string
}

// decide continues a reconcile, or begins one.
func (p *process) decide(w *World) {
	if p.reconcile == nil {
		p.reconcile = w.begin(p)
		p.idle, p.stalled, p.wake = false, false, time.Time{}
	}

	r := p.reconcile

	if p.plan = r.proceed(); len(p.plan) == 0 {
		p.idle = !r.wrote && !r.again
		p.reconcile, w.news = nil, false
	}
}

// begin begins a reconcile.
func (w *World) begin(p *process) *reconcile {
	r := &reconcile{
		World: w, process: p, resource: w.resource,
		content: Content{Wanted: w.resource.wanted, Secret: w.secret, Registry: w.registry},
		policy: state.Policy{
			Retries: Retries, Timeout: Timeout, Rollback: true, Paused: w.resource.wanted.Paused,
			Existed:     w.resource.status.Release != nil,
			SpecChanged: int64(w.resource.generation) != w.resource.status.ObservedGeneration,
			Requested:   w.resource.request != w.resource.handled,
		},
	}

	switch w.defect {
	case RetriesForever:
		r.policy.Retries = math.MaxInt
	case GivesUp:
		r.policy.Retries, r.policy.Timeout = 0, 0
	}

	r.observe()

	return r
}

// proceed takes steps until one takes requests, and returns them; none if nothing is left to do.
func (r *reconcile) proceed() []request {
	if r.finished {
		return nil
	}

	if r.resource.deleting {
		r.finished = true
		return r.uninstall()
	}

	for {
		seen := r.known()
		if r.begun {
			r.pass = r.pass.After(r.step, r.result, seen)
		}

		pass, step := r.pass.Next(seen)
		r.pass, r.step, r.result, r.begun = pass, step, report.Result{}, true

		if r.step.Action == decide.Finish {
			r.finished = true
			return r.finish()
		}

		if plan := r.take(r.step); len(plan) > 0 {
			return plan
		}
	}
}

// wakeAt makes the process look again at a time that is yet to come.
func (r *reconcile) wakeAt(at time.Time) {
	p := r.process
	if at.After(r.policy.Now) && (p.wake.IsZero() || at.Before(p.wake)) {
		p.wake = at
	}
}
