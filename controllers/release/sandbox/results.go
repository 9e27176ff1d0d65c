package sandbox

import (
	"bytes"
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// keptFor is how long a result is kept: an upgrade renders the same chart before and after it applies CRDs.
	keptFor = time.Minute
	// maxKept is the maximum size of all results that are kept, in bytes. Those of real providers have some
	// ten kilobytes each.
	maxKept = 2 << 20
)

// results keeps what the child answered to requests. What a template gets from time and chance stays the same
// meanwhile, so what was checked is what is applied.
type results struct {
	mu   sync.Mutex
	kept map[requestID]*keptResult
	size int
}

// requestID identifies a request with all its files and values.
type requestID [sha256.Size]byte

type keptResult struct {
	output []byte
	since  time.Time
}

// get returns the answer to a request; nil if none is kept.
func (r *results) get(id requestID) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()

	if found := r.kept[id]; found != nil {
		return found.output
	}

	return nil
}

// add keeps the answer to a request, and drops the oldest ones for it. One that would displace most
// others is not kept.
func (r *results) add(id requestID, output []byte) {
	if len(output) > maxKept/4 {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.drop(id)

	for r.size+len(output) > maxKept {
		r.drop(r.oldest())
	}

	if r.kept == nil {
		r.kept = map[requestID]*keptResult{}
	}

	added := &keptResult{output: bytes.Clone(output), since: time.Now()}
	r.kept[id] = added
	r.size += len(output)

	time.AfterFunc(keptFor, func() {
		r.mu.Lock()
		defer r.mu.Unlock()

		if r.kept[id] == added {
			r.drop(id)
		}
	})
}

// oldest returns the request whose answer has been kept for the longest time.
func (r *results) oldest() (oldest requestID) {
	var since time.Time

	for id, result := range r.kept {
		if since.IsZero() || result.since.Before(since) {
			oldest, since = id, result.since
		}
	}

	return oldest
}

func (r *results) drop(id requestID) {
	if found := r.kept[id]; found != nil {
		r.size -= len(found.output)
		delete(r.kept, id)
	}
}
