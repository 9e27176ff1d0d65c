package clusters

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/capstan-project/capstan/controllers/object"
)

// UnreachableError reports that the API server of spec.kubeConfig does not answer. The operator asks it
// again by itself, and wakes the cluster's providers when it does.
type UnreachableError struct {
	// Address of the API server, and why it cannot be reached.
	Address, Reason string
	// Until is when to look again at the latest.
	Until time.Time
	// Retry means that the operator has not found out yet whether that was only one request, and wakes
	// nothing.
	Retry bool
	// Pause is how long the API server is not asked again because it has sent too much; zero otherwise.
	Pause time.Duration
	hint  string
}

func (e *UnreachableError) Error() string {
	if e.Pause > 0 {
		return fmt.Sprintf("the API server %s of spec.kubeConfig is not asked again for %s: %s; "+
			"reduce the objects in that cluster or correct the kubeconfig%s", e.Address, e.Pause, e.Reason, e.hint)
	}

	return fmt.Sprintf("the API server %s of spec.kubeConfig cannot be reached: %s; "+
		"correct the kubeconfig or the connection%s", e.Address, e.Reason, e.hint)
}

// withHint returns the error for a resource, with what to do if it is being deleted.
func (e *UnreachableError) withHint(hint string) *UnreachableError {
	hinted := *e
	hinted.hint = hint

	return &hinted
}

// refreshTime is when a resource of an unreachable cluster is looked at again, although it is woken when
// the cluster answers.
const refreshTime = 10 * time.Minute

// maxReason limits the reason why a server cannot be reached, which may quote what it sent.
const maxReason = 300

// reachability knows whether a remote API server answers. After a request has failed, it alone asks the
// server again, with back-off; all other requests are refused until the server has answered.
type reachability struct {
	address string
	limits  Limits
	// changed is called when the server is first found unreachable, and when it answers again.
	changed func()
	// running ends when the connection is closed.
	running context.Context

	mu sync.Mutex
	// probe sends one request to the server.
	probe   func(context.Context) error
	probing bool
	down    *UnreachableError
	// answer is when the server answered last.
	answer time.Time
	// pause is when the server, which has sent too much, may be asked again.
	pause time.Time
}

// setProbe sets how the server is asked.
func (r *reachability) setProbe(probe func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.probe = probe
}

// refusal returns why no request is sent; nil if the server is not known to be unreachable. The error is an
// *UnreachableError.
func (r *reachability) refusal() error {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.down == nil {
		return nil
	}

	down := *r.down
	down.Until = time.Now().Add(refreshTime)

	return &down
}

// failed notes that a request got no response, or that there was none for a while. The server counts as
// unreachable if a probe, which starts now, gets none either.
func (r *reachability) failed() {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.probing || r.probe == nil {
		return
	}

	r.probing = true

	go r.probeUntilReachable()
}

// answered notes that the server has answered a request.
func (r *reachability) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.answer = time.Now()
}

// watch probes the server whenever it has answered nothing for a while, until the connection is closed.
// Otherwise only the next change would show that a server is gone whose watches are still open.
func (r *reachability) watch() {
	ticker := time.NewTicker(r.limits.Idle / 2)
	defer ticker.Stop()

	for {
		select {
		case <-r.running.Done():
			return
		case <-ticker.C:
		}

		r.mu.Lock()
		idle := time.Since(r.answer) > r.limits.Idle/2
		r.mu.Unlock()

		if idle {
			r.failed()
		}
	}
}

// probeUntilReachable asks the server until it answers.
func (r *reachability) probeUntilReachable() {
	for wait := r.limits.MinProbe; ; wait = min(2*wait, r.limits.MaxProbe) {
		if !r.waitForPause() {
			return
		}

		err := r.ask()
		if r.set(err) {
			return
		}

		select {
		case <-r.running.Done():
			return
		case <-time.After(wait):
		}
	}
}

// ask sends one request to the server.
func (r *reachability) ask() error {
	ctx, cancel := context.WithTimeoutCause(
		withProbe(r.running), r.limits.ProbeTimeout, fmt.Errorf("no response within %s", r.limits.ProbeTimeout))
	defer cancel()

	r.mu.Lock()
	probe := r.probe
	r.mu.Unlock()

	err := probe(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return context.Cause(ctx)
	}

	return err
}

// exceeded notes that the server has sent too much. It counts as unreachable for a while, and then until
// it answers a probe.
func (r *reachability) exceeded(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	now := time.Now()
	if now.Before(r.pause) {
		return
	}

	before := r.down
	r.down = &UnreachableError{Address: r.address, Reason: reason, Pause: r.limits.Pause}
	r.pause = now.Add(r.limits.Pause)

	probes := !r.probing && r.probe != nil
	r.probing = r.probing || probes

	go func() {
		if before == nil && r.running.Err() == nil {
			r.changed()
		}

		if probes {
			r.probeUntilReachable()
		}
	}()
}

// pausing returns why no more is read from the server; nil unless it has sent too much.
func (r *reachability) pausing() error {
	r.mu.Lock()
	pausing := time.Now().Before(r.pause)
	r.mu.Unlock()

	if !pausing {
		return nil
	}

	return r.refusal()
}

// waitForPause waits until the server may be asked again, and reports whether it may: not if the
// connection is closed.
func (r *reachability) waitForPause() bool {
	r.mu.Lock()
	pause := time.Until(r.pause)
	r.mu.Unlock()

	if pause <= 0 {
		return true
	}

	select {
	case <-r.running.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// set notes the result of a probe, and reports whether the server answered. A probe that was sent before
// the server sent too much says nothing.
func (r *reachability) set(err error) bool {
	r.mu.Lock()

	if time.Now().Before(r.pause) {
		r.mu.Unlock()
		return false
	}

	before := r.down
	r.down = nil

	if err != nil {
		r.down = &UnreachableError{Address: r.address, Reason: reasonOf(err)}
	}

	r.probing = err != nil
	r.mu.Unlock()

	if (before != nil) != (err != nil) && r.running.Err() == nil {
		r.changed()
	}

	return err == nil
}

// reasonOf returns why a request failed, without its URL.
func reasonOf(err error) string {
	if request := (*url.Error)(nil); errors.As(err, &request) {
		err = request.Err
	}

	return object.OneLine(err.Error(), maxReason)
}
