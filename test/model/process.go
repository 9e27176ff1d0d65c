package model

import (
	"math"
	"time"

	"github.com/capstan-project/capstan/controllers/reconcile/decide"
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
	// failed are the requests that follow instead of the planned ones if there was an error.
	failed func(refused bool) []request
}

// process is one of the operator's processes.
type process struct {
	name   string
	skew   time.Duration
	frozen bool
	// lost is set once another process has become the leader.
	lost bool

	// plan has the requests of the action that it is carrying out, and last those that follow even if one
	// of these fails.
	plan, last []request
	// idle is set after there was nothing to do. wake is when there may be, by its own clock; zero if
	// only a change brings it back.
	idle bool
	wake time.Time
	// stalled is set if what is wanted cannot be installed.
	stalled bool
}

// restart ends the process with all that it remembers, and starts it again.
func (p *process) restart() { *p = process{name: p.name, skew: p.skew} }

// proceed makes the next request. The leader decides on the next action once it has carried out the
// last one.
func (p *process) proceed(w *World, f fate) {
	if p.lost && w.defect != WritesWithoutLease {
		p.restart() // it exits before it sends anything
	}

	if len(p.plan) == 0 {
		if p == w.leader && f == passes {
			p.decide(w)
		}

		return
	}

	next := p.plan[0]
	p.plan = p.plan[1:]

	if p.lost {
		w.report(violates(Fenced, "the %s process makes a request", p.name))
	}

	if p != w.leader {
		w.report(violates(Fenced, "the %s process makes a request", p.name))
	}

	accepted := true
	if f != failsBefore {
		accepted = next.send()
	}

	if f != passes || !accepted {
		p.plan = nil
		if next.failed != nil {
			p.plan = next.failed(!accepted)
		}
	}

	if len(p.plan) == 0 {
		p.plan, p.last = p.last, nil
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

// reconcile is what one reconcile of the operator knows.
type reconcile struct {
	*World

	process  *process
	resource resource
	content  Content
	history  state.History
	policy   state.Policy
	healthy  bool
	deferred bool
	// done are the steps of care that were taken, and allowed is the revision that may be returned to.
	done    []decide.Action
	allowed int
}

// decide plans the requests of the next action: care comes before change.
func (p *process) decide(w *World) {
	r := &reconcile{
		World: w, process: p, resource: w.resource, history: w.history(),
		content: Content{Wanted: w.resource.wanted, Secret: w.secret, Registry: w.registry},
		policy: state.Policy{
			Retries: Retries, Timeout: Timeout, Rollback: true, Paused: w.resource.wanted.Paused,
			Existed:     w.resource.status.Release != nil,
			SpecChanged: int64(w.resource.generation) != w.resource.status.ObservedGeneration,
			Requested:   w.resource.request != w.resource.handled,
			Now:         w.now,
			Refused:     map[int]bool{},
		},
	}

	if w.defect == TrustsOwnClock {
		r.policy.Now = r.policy.Now.Add(p.skew)
	}

	switch w.defect {
	case RetriesForever:
		r.policy.Retries = math.MaxInt
	case GivesUp:
		r.policy.Retries, r.policy.Timeout = 0, 0
	}

	p.idle = false
	p.stalled = false
	p.wake = time.Time{}

	if r.resource.deleting {
		p.plan = r.uninstall()
		return
	}

	if newest, exists := w.newestRecord(); exists {
		r.healthy = w.healthy(newest.Content)

		if p.plan = r.care(newest); len(p.plan) > 0 {
			return
		}
	}

	p.plan, p.last = r.change()
	if len(p.plan) == 0 {
		p.plan, p.last = p.last, nil
	}

	p.idle = len(p.plan) == 0
}

// wakeAt makes the process look again at a time that is yet to come.
func (r *reconcile) wakeAt(at time.Time) {
	p := r.process
	if at.After(r.policy.Now) && (p.wake.IsZero() || at.Before(p.wake)) {
		p.wake = at
	}
}
