package ui

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	// aliveInterval is the time between two signs of life for a page without updates.
	aliveInterval = 10 * time.Second
	// gatherTime is how long changes are gathered before pages are notified.
	gatherTime = 500 * time.Millisecond
)

// events serves the stream of updates: an event "changed" with the IDs of the providers that have changed, and an event
// "alive" with the reason why the facts may be outdated, which is usually empty.
func (s *Site) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")

	if r.Method == http.MethodHead {
		return
	}

	subscriber := s.Feed.subscribe()
	defer s.Feed.unsubscribe(subscriber)

	alive := time.NewTicker(aliveInterval)
	defer alive.Stop()

	for send(w, "alive", s.Feed.stale()) == nil {
		select {
		case <-r.Context().Done():
			return
		case <-alive.C:
			continue
		case <-subscriber.wake:
		}

		select {
		case <-r.Context().Done():
			return
		case <-time.After(gatherTime):
		}

		if changed := s.Feed.take(subscriber); len(changed) > 0 && send(w, "changed", strings.Join(changed, " ")) != nil {
			return
		}
	}
}

// send sends an event. Its data has no line breaks.
func send(w http.ResponseWriter, event, data string) error {
	line := strings.Join(strings.Fields(data), " ")
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, line); err != nil {
		return err
	}

	return http.NewResponseController(w).Flush()
}
