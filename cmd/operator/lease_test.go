package main

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a lock whose writes have a result.
type lock struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	err    error
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &l.record, nil, l.err
}

func (l *lock) Identity() string                                                { return "me" }
func (l *lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }
func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func TestTheEndOfALease(t *testing.T) {
	record := func(holder string) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15}
	}

	// Times are relative to the first renewal.
	for name, tt := range map[string]struct {
		do   func(ctx context.Context, l *lease, below *lock) error
		at   time.Duration
		lost bool
	}{
		"never held": {
			func(context.Context, *lease, *lock) error { return nil }, time.Hour, false,
		},
		"held": {
			func(ctx context.Context, l *lease, _ *lock) error { return l.Create(ctx, record("me")) },
			14 * time.Second, false,
		},
		"expired": {
			func(ctx context.Context, l *lease, _ *lock) error { return l.Create(ctx, record("me")) },
			16 * time.Second, true,
		},
		"renewed in vain": {
			func(ctx context.Context, l *lease, below *lock) error {
				err := l.Update(ctx, record("me"))
				l.until = l.until.Add(-time.Minute)
				below.err = errors.New("conflict")

				return errors.Join(err, ignore(l.Update(ctx, record("me"))))
			},
			0, true,
		},
		"renewed after it had expired": {
			func(ctx context.Context, l *lease, _ *lock) error {
				err := l.Update(ctx, record("me"))
				l.until = l.until.Add(-time.Minute)

				return errors.Join(err, l.Update(ctx, record("me")))
			},
			0, false,
		},
		"released": {
			func(ctx context.Context, l *lease, _ *lock) error {
				return errors.Join(l.Update(ctx, record("me")), l.Update(ctx, record("")))
			},
			time.Hour, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			calls := 0
			below := &lock{}
			l := &lease{Interface: below, lost: func(error) { calls++ }}
			g.Expect(tt.do(t.Context(), l, below)).To(Succeed())

			err := l.check(time.Now().Add(tt.at))
			if tt.lost {
				g.Expect(err).To(MatchError(errLost))
				g.Expect(calls).To(Equal(1))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(calls).To(BeZero())
			}
		})
	}
}

func TestAnEarlierLease(t *testing.T) {
	record := func(holder string, transitions int, renewed time.Duration) resourcelock.LeaderElectionRecord {
		at := metav1.NewTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC).Add(renewed))
		return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaderTransitions: transitions, RenewTime: at}
	}

	for name, tt := range map[string]struct {
		known, found resourcelock.LeaderElectionRecord
		restored     bool
	}{
		"nothing is known":                    {resourcelock.LeaderElectionRecord{}, record("me", 3, 0), false},
		"as it was written":                   {record("me", 3, 0), record("me", 3, 0), false},
		"as the API server stores it":         {record("me", 3, 1500), record("me", 3, 1000), false},
		"renewed":                             {record("me", 3, 0), record("me", 3, time.Second), false},
		"renewed earlier":                     {record("me", 3, 0), record("me", 3, -time.Second), true},
		"of an earlier leader":                {record("me", 3, 0), record("other", 2, -time.Hour), true},
		"taken over by one with a slow clock": {record("other", 3, 0), record("me", 4, -time.Minute), false},
	} {
		for _, by := range []string{"written", "read"} {
			t.Run(name+", "+by, func(t *testing.T) {
				g := NewWithT(t)

				var lost error

				below := &lock{record: tt.known}
				l := &lease{Interface: below, lost: func(reason error) { lost = reason }}

				if by == "written" {
					g.Expect(l.Update(t.Context(), tt.known)).To(Succeed())
				} else {
					g.Expect(l.Get(t.Context())).Error().NotTo(HaveOccurred())
				}

				below.record = tt.found
				_, _, err := l.Get(t.Context())

				if tt.restored {
					g.Expect(err).To(MatchError(errRestored))
					g.Expect(lost).To(MatchError(errRestored))
				} else {
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(lost).NotTo(HaveOccurred())
				}
			})
		}
	}
}

func ignore(error) error { return nil }

func TestBothClocksCount(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	wall := now.Round(0) // has no monotonic clock

	g.Expect(passed(now, now.Add(time.Second))).To(BeFalse())
	g.Expect(passed(now.Add(2*time.Second), now.Add(time.Second))).To(BeTrue())
	g.Expect(passed(wall.Add(time.Hour), now)).To(BeTrue(), "the machine has slept")
}

func TestNothingIsSentAfterTheEnd(t *testing.T) {
	g := NewWithT(t)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())

	received := make(chan string, 1)

	go func() {
		accepted, err := listener.Accept()
		if err != nil {
			return
		}

		content, _ := io.ReadAll(accepted)
		received <- string(content)
	}()

	l := &lease{Interface: &lock{}, lost: func(error) {}}
	opened, err := l.dial(t.Context(), "tcp", listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())

	_, err = opened.Write([]byte("before"))
	g.Expect(err).NotTo(HaveOccurred())

	l.held, l.until = true, time.Now().Add(-time.Second)
	_, err = opened.Write([]byte("after"))
	g.Expect(err).To(MatchError(errLost))

	g.Expect(opened.Close()).To(Succeed())
	g.Eventually(received).Should(Receive(Equal("before")))
	g.Expect(listener.Close()).To(Succeed())
}
