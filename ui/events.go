package ui

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/capstan-project/capstan/controllers/retry"
	"github.com/capstan-project/capstan/ui/page"
)

// writeTimeout is how long a viewer may take to receive an event.
const writeTimeout = 10 * time.Second

// events serves the stream of updates: an event "changed" with the IDs of the providers that have changed, or an
// asterisk for all, and an event "alive" with the reason why the facts may be outdated, which is usually empty.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	release, err := h.admit(r, true)
	if err != nil {
		h.problem(w, err)
		return
	}
	defer release()

	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		h.problem(w, &RefusedError{Code: http.StatusServiceUnavailable, Message: "Too many pages are open."})
		return
	}

	view, err := h.Access.View(r)
	if err != nil {
		h.problem(w, err)
		return
	}

	w.Header().Set("Content-Type", "text/event-stream")

	if r.Method == http.MethodHead {
		return
	}

	subscriber := h.Feed.subscribe()
	defer h.Feed.unsubscribe(subscriber)

	s := &stream{handler: h, request: r, view: view, out: w, control: http.NewResponseController(w)}
	s.follow(r.Context(), subscriber)
}

// stream is the connection to one page.
type stream struct {
	*handler

	request *http.Request
	view    View
	known   map[string]bool // the IDs of the providers that the viewer could see last
	out     http.ResponseWriter
	control *http.ResponseController
}

// follow sends updates until the viewer leaves or may not see anything any more.
func (s *stream) follow(ctx context.Context, subscriber *subscriber) {
	alive := time.NewTicker(aliveInterval)
	defer alive.Stop()

	var err error
	if s.known, err = s.list(ctx); err != nil {
		return
	}

	for s.send("alive", s.Feed.stale()) == nil {
		select {
		case <-ctx.Done():
			return
		case <-alive.C:
			// What the viewer may see can have changed.
			view, err := s.Access.View(s.request)
			if err != nil {
				return
			}

			s.view = view
		case <-subscriber.wake:
			if !retry.Pause(ctx, gatherTime) || s.sendChanges(ctx, subscriber.take()) != nil {
				return
			}
		}
	}
}

// sendChanges sends the IDs of providers that the viewer may see, if there are any.
func (s *stream) sendChanges(ctx context.Context, changed []string) error {
	if len(changed) == 0 {
		return nil
	}

	visible, err := s.visible(ctx, changed)
	if err != nil {
		return err
	}

	if len(visible) == 0 {
		return nil
	}

	return s.send("changed", strings.Join(visible, " "))
}

// visible returns the IDs without those of providers that the viewer must not know. If the viewer does not see one any
// more, because it was deleted, that is allChanged: no page shows it any more.
func (s *stream) visible(ctx context.Context, changed []string) ([]string, error) {
	known, err := s.list(ctx)
	if err != nil {
		return nil, err
	}

	before := s.known
	s.known = known

	var visible []string

	for _, id := range changed {
		switch {
		case id == allChanged, before[id] && !known[id]:
			return []string{allChanged}, nil
		case known[id]:
			visible = append(visible, id)
		}
	}

	return visible, nil
}

// list returns the IDs of the providers that the viewer may see.
func (s *stream) list(ctx context.Context) (map[string]bool, error) {
	found, err := s.view.Providers(ctx)
	if err != nil {
		return nil, err
	}

	known := make(map[string]bool, len(found))
	for _, p := range found {
		known[page.ID(string(p.ProviderType()), p.GetNamespace(), p.GetName())] = true
	}

	return known, nil
}

// send sends an event. Its data has no line breaks.
func (s *stream) send(event, data string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}

	line := strings.Join(strings.Fields(data), " ")
	if _, err := fmt.Fprintf(s.out, "event: %s\ndata: %s\n\n", event, line); err != nil {
		return err
	}

	return s.control.Flush()
}
