package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// errLost is the error of requests of a process whose lease has expired.
var errLost = errors.New("the lease of the leader has expired; another process may be the leader")

// errRestored is the error of a process that knows a later lease than the API server.
var errRestored = errors.New("the API server has an earlier lease than this process has seen, so its data was " +
	"restored from a backup; what this process knows is of another time")

// lease is the lock of a leader election, which knows until when the lease is this process's own. Before
// another process may take it over, nothing more is sent over the connections that the lease has dialed. Leader
// election alone does not ensure that: a process that was frozen, with its machine or by itself, continues where it
// stopped, and notices only later that another one leads.
type lease struct {
	resourcelock.Interface

	// lost is called instead of sending something too late, and once the past has returned. It should end the process,
	// and may be called several times.
	lost func(reason error)

	mu    sync.Mutex
	held  bool
	until time.Time
	seen  resourcelock.LeaderElectionRecord
}

// Get reads the lease. The renewals of a lease, and the number of leaders it has had, only grow, unless etcd was
// restored from a backup. The caches of this process would drop all that has a lower resource version than they have
// seen, for as long as it takes to write as often as before.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		return record, raw, err
	}

	l.mu.Lock()
	before := l.seen
	l.seen = *record
	l.mu.Unlock()

	// The API server stores microseconds, and what this process has written has nanoseconds.
	renewed, known := record.RenewTime.Truncate(time.Microsecond), before.RenewTime.Truncate(time.Microsecond)

	if renewed.Before(known) && record.LeaderTransitions <= before.LeaderTransitions {
		l.lost(errRestored)
		return nil, nil, errRestored
	}

	return record, raw, nil
}

// Create creates the lease.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()

	return l.note(sent, record, l.Interface.Create(ctx, record))
}

// Update acquires, renews or releases the lease.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()

	return l.note(sent, record, l.Interface.Update(ctx, record))
}

// note notes what the lease was set to, unless that failed. Others count from when they see the change, so
// the time at which it was sent is early enough.
func (l *lease) note(sent time.Time, record resourcelock.LeaderElectionRecord, err error) error {
	if err != nil {
		return err
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	l.seen = record
	l.held = record.HolderIdentity == l.Identity()
	l.until = sent.Add(time.Duration(record.LeaseDurationSeconds) * time.Second)

	return nil
}

// check returns errLost if the lease was this process's own and has expired.
func (l *lease) check(now time.Time) error {
	l.mu.Lock()
	lost := l.held && passed(now, l.until)
	l.mu.Unlock()

	if !lost {
		return nil
	}

	l.lost(errLost)

	return errLost
}

// passed reports whether a time has passed, by the wall clock or by the monotonic clock. The latter stands
// still while a machine sleeps, and the former may be set back.
func passed(now, until time.Time) bool {
	return now.After(until) || now.Round(0).After(until.Round(0))
}

// dial connects to a server. Nothing is sent over the connection after the lease has expired, unless it was
// never this process's own.
func (l *lease) dial(ctx context.Context, network, address string) (net.Conn, error) {
	const timeout = 30 * time.Second // the same as that of client-go, as is the other

	dialer := net.Dialer{Timeout: timeout, KeepAlive: timeout}

	opened, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}

	return &connection{Conn: opened, lease: l}, nil
}

// connection sends only while the lease has not expired.
type connection struct {
	net.Conn
	lease *lease
}

// Write sends data.
func (c *connection) Write(data []byte) (int, error) {
	if err := c.lease.check(time.Now()); err != nil {
		return 0, err
	}

	return c.Conn.Write(data)
}
