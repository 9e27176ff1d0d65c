package clusters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// What the responses of remote API servers may take, in bytes. Most are small and need no memory of the budget.
const (
	// smallBody and smallMemory are for a response that is not counted.
	smallBody, smallMemory = 16 << 10, 128 << 10
	// mediumBody and mediumMemory are for most lists.
	mediumBody, mediumMemory = 2 << 20, 16 << 20
	// largeBody and largeMemory are for the largest response that is accepted.
	largeBody, largeMemory = 12 << 20, 48 << 20
	// maxRead is what one reconcile may read in all.
	maxRead = 96 << 20
	// maxStream and maxStreamMemory are for all events of a watch. Only hooks are watched, one object at a time.
	maxStream, maxStreamMemory = 1 << 20, 8 << 20

	// allMemory is the part of limit.Content that all remote servers together may take, of which those whose kubeconfigs
	// are in the same namespace may take limit.RemoteMemory.
	allMemory = 2 * limit.RemoteMemory
)

// newResponseMemory returns the memory that is divided among the namespaces with kubeconfigs.
func newResponseMemory() *limit.Memory { return limit.NewMemory(allMemory, limit.RemoteMemory) }

var errNoMemory = errors.New("other responses take all memory for those of remote API servers; it is asked again later")

// reading is what one reconcile holds of the responses of remote API servers. It has memory of the budget from its
// first response that is not small until its end, because what was read is used until then.
type reading struct {
	// turn is held while a response that is not small is read, so that the reconcile needs memory for one at a time.
	turn *semaphore.Weighted

	mu      sync.Mutex
	total   int64
	memory  int64
	release func()
}

func newReading() *reading { return &reading{turn: semaphore.NewWeighted(1), release: func() {}} }

type readingKey struct{}

// WithReading returns a context for a reconcile in a remote cluster, and what ends the reconcile.
func WithReading(ctx context.Context) (reading context.Context, end func()) {
	r := newReading()

	return context.WithValue(ctx, readingKey{}, r), r.end
}

// end gives the memory back.
func (r *reading) end() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.release()
	r.release, r.memory = func() {}, 0
}

// reserve makes sure that the reconcile has an amount of memory.
func (r *reading) reserve(ctx context.Context, memory *limit.Memory, namespace string, size int64) error {
	r.mu.Lock()
	has := r.memory
	r.mu.Unlock()

	if has >= size {
		return nil
	}

	// To wait with a part of it would keep others from finishing.
	r.end()

	release, err := memory.Acquire(ctx, namespace, size)
	if err != nil {
		return errNoMemory
	}

	releaseContent, err := limit.Content.Acquire(ctx, namespace, size)
	if err != nil {
		release()
		return errNoMemory
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.memory = size
	r.release = func() {
		releaseContent()
		release()
	}

	return nil
}

// count counts what was read.
func (r *reading) count(size int) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.total += int64(size); r.total > maxRead {
		return fmt.Errorf("it sends more than %d MiB at once", maxRead>>20)
	}

	return nil
}

// readBody reads a response of a server whose kubeconfig is in a namespace. Before it reads more than a small one, it
// waits for memory.
func (r *reading) readBody(
	ctx context.Context, memory *limit.Memory, namespace string, body io.Reader,
) ([]byte, error) {
	var content bytes.Buffer

	hasTurn := false

	defer func() {
		if hasTurn {
			r.turn.Release(1)
		}
	}()

	for _, class := range []struct{ body, memory int64 }{
		{smallBody, smallMemory}, {mediumBody, mediumMemory}, {largeBody, largeMemory},
	} {
		if class.body > smallBody && !hasTurn {
			if err := r.turn.Acquire(ctx, 1); err != nil {
				return nil, errNoMemory
			}

			hasTurn = true
		}

		if class.body > smallBody {
			if err := r.reserve(ctx, memory, namespace, class.memory); err != nil {
				return nil, err
			}
		}

		read, err := io.CopyN(&content, body, class.body+1-int64(content.Len()))
		if countErr := r.count(int(read)); countErr != nil {
			return nil, countErr
		}

		switch {
		case err == nil: // there is more
		case err != io.EOF: //nolint:errorlint // io.CopyN does not wrap it
			return nil, err
		case decodedSize(content.Bytes()) <= class.memory:
			return content.Bytes(), nil
		}
	}

	return nil, fmt.Errorf("a response takes more than %d MiB, or %d MiB of memory", largeBody>>20, largeMemory>>20)
}

// What an object or list, and any other value, takes in memory at least after it was decoded, in bytes. In the response
// it takes as few as 3 and 2.
const (
	objectMemory = 400
	valueMemory  = 24
)

// decodedSize estimates the memory for a JSON document and for what it is decoded to.
func decodedSize(document []byte) int64 {
	const copies = 2 // the document, and a copy that the client makes

	return int64(copies*len(document) +
		objectMemory*(bytes.Count(document, []byte("{"))+bytes.Count(document, []byte("["))) +
		valueMemory*bytes.Count(document, []byte(",")))
}
