// Package clock tells the time of an API server. Times that an API server has written, such as when an
// object was created, can be compared only with its own clock: that of this process may differ.
package clock

import (
	"net/http"
	"sync"
	"time"
)

// Clock is the clock of an API server, as far as the answers to requests tell it. It costs no requests, and
// is the clock of this process until the first answer. A nil Clock always is. It is safe for concurrent
// use.
type Clock struct {
	mu     sync.Mutex
	offset time.Duration // how far the API server's clock is ahead
}

// Now returns the time of the API server.
func (c *Clock) Now() time.Time { return time.Now().Round(0).Add(c.ahead()) }

// Since returns the time since the API server wrote a time.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Local returns when this process's clock shows a time of the API server. The zero time stays zero.
func (c *Clock) Local(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}

	return t.Add(-c.ahead())
}

func (c *Clock) ahead() time.Duration {
	if c == nil {
		return 0
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	return c.offset
}

// Wrap returns a transport that reads the time from the answers.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{next: next, clock: c}
}

type transport struct {
	next  http.RoundTripper
	clock *Clock
}

// RoundTrip sends a request.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := time.Now()

	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}

	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		t.clock.observe(date, sent, time.Now())
	}

	return response, nil
}

// WrappedRoundTripper lets client-go find the transports below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// observe takes the date of an answer into account, which was written between the request and the answer,
// and is cut to seconds. It corrects what is known only as far as the two contradict each other, so that
// many answers tell the time better than one.
func (c *Clock) observe(date, sent, received time.Time) {
	least := date.Sub(received.Round(0))
	most := date.Add(time.Second).Sub(sent.Round(0))

	c.mu.Lock()
	defer c.mu.Unlock()

	c.offset = min(max(c.offset, least), most)
}
