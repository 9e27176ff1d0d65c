package clusters

import (
	"fmt"
	"net/url"
	"sync"
)

// sizes counts the bytes that a remote API server sends.
type sizes struct {
	mu sync.Mutex
	// lists has the bytes of lists that come in several pages, by path and selectors.
	lists map[string]int64
	// open is the number of bytes of the responses that are being read, without watches: their events are
	// decoded one by one.
	open int64
}

// start returns the functions that count the bytes of a response, and that note its end. The first one
// returns what exceeds a limit; empty if nothing does.
func (s *sizes) start(address *url.URL, limits Limits) (count func(n int) string, end func()) {
	var total int64

	if _, ok := watchDuration(address); ok {
		return func(n int) string {
			total += int64(n)
			return excess("a watch", total, limits.MaxList)
		}, func() {}
	}

	list := s.page(address)

	count = func(n int) string {
		s.mu.Lock()
		defer s.mu.Unlock()

		total += int64(n)
		s.open += int64(n)

		if list != "" {
			s.lists[list] += int64(n)
		}

		switch {
		case total > limits.MaxResponse:
			return excess("a response", total, limits.MaxResponse)
		case s.lists[list] > limits.MaxList:
			return excess("the pages of a list", s.lists[list], limits.MaxList)
		default:
			return excess("responses at the same time", s.open, limits.MaxList)
		}
	}

	end = func() {
		s.mu.Lock()
		defer s.mu.Unlock()

		s.open -= total
	}

	return count, end
}

// page returns the key of the list that a request asks for a page of; empty if it does not. The first
// page of a list counts from zero.
func (s *sizes) page(address *url.URL) string {
	query := address.Query()
	if query.Get("limit") == "" && query.Get("continue") == "" {
		return ""
	}

	first := query.Get("continue") == ""

	query.Del("continue")

	key := address.Path + "?" + query.Encode()

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.lists == nil {
		s.lists = map[string]int64{}
	}

	if first {
		s.lists[key] = 0
	}

	return key
}

// excess describes what exceeds a limit; empty if it does not.
func excess(what string, size, limit int64) string {
	if size <= limit {
		return ""
	}

	return fmt.Sprintf("%s exceeded the limit of %d MiB", what, limit>>20)
}
