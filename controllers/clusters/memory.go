package clusters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// What a reconcile in a remote cluster, and the responses of remote API servers, may take, in bytes.
const (
	// reconcileMemory is what a reconcile has until it ends: it suffices for one response after the other of at most
	// reconcileBody.
	reconcileBody, reconcileMemory = 2 << 20, 16 << 20
	// largeBody and largeMemory are for the largest response that is accepted.
	largeBody, largeMemory = 12 << 20, 48 << 20
	// smallBody and smallMemory are for a response outside of reconciles that is not counted.
	smallBody, smallMemory = 16 << 10, 128 << 10
	// maxRead is what one reconcile may read in all.
	maxRead = 96 << 20
	// maxStream and maxStreamMemory are for all events of a watch. Only hooks are watched, one object at a time.
	maxStream, maxStreamMemory = 1 << 20, 8 << 20
)

// responseMemory is the part of limit.Content that remote clusters may take.
type responseMemory struct {
	// reconciles is for reconciles. Who has it may wait for anything but more of it.
	reconciles *limit.Memory
	// responses is for large responses. Who has it waits for nothing but the server, and gives it back soon.
	responses *limit.Memory
}

func newResponseMemory() *responseMemory {
	return &responseMemory{
		reconciles: limit.NewMemory(2*limit.RemoteMemory, limit.RemoteMemory),
		responses:  limit.NewMemory(2*largeMemory, largeMemory),
	}
}

// acquire waits for memory of a part for the kubeconfigs of a namespace, and returns what gives it back.
func acquire(ctx context.Context, part *limit.Memory, namespace string, size int64) (release func(), err error) {
	releasePart, err := part.Acquire(ctx, namespace, size)
	if err != nil {
		return nil, errNoMemory
	}

	releaseContent, err := limit.Content.Acquire(ctx, namespace, size)
	if err != nil {
		releasePart()
		return nil, errNoMemory
	}

	return func() {
		releaseContent()
		releasePart()
	}, nil
}

var errNoMemory = errors.New("other responses take all memory for those of remote API servers; it is asked again later")

// reading is what one reconcile reads from remote API servers.
type reading struct {
	// turn is held while a response is read: the reconcile has memory for one at a time.
	turn *semaphore.Weighted

	mu    sync.Mutex
	total int64
}

type readingKey struct{}

// Enter waits until a reconcile in the target's cluster may begin: there is memory for some of each namespace at a
// time. It returns the context for the reconcile, and what ends it. It is called before the reconcile has anything that
// others wait for.
func (p *Pool) Enter(ctx context.Context, namespace string, target *Target) (context.Context, func(), error) {
	if !target.Remote {
		return ctx, func() {}, nil
	}

	release, err := acquire(ctx, p.responseMemory().reconciles, namespace, reconcileMemory)
	if err != nil {
		return nil, nil, err
	}

	return context.WithValue(ctx, readingKey{}, newReading()), release, nil
}

func newReading() *reading { return &reading{turn: semaphore.NewWeighted(1)} }

// count counts what was read.
func (r *reading) count(size int) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.total += int64(size); r.total > maxRead {
		return fmt.Errorf("it sends more than %d MiB at once", maxRead>>20)
	}

	return nil
}

// readBody reads a response of a server whose kubeconfig is in a namespace. Before it reads more than the reconcile of
// the context has memory for, it waits for memory, which release gives back.
func (m *responseMemory) readBody(
	ctx context.Context, namespace string, body io.Reader,
) (content []byte, release func(), err error) {
	reconcile, inReconcile := ctx.Value(readingKey{}).(*reading)

	size, memory := int64(smallBody), int64(smallMemory)
	if inReconcile {
		size, memory = reconcileBody, reconcileMemory

		if err := reconcile.turn.Acquire(ctx, 1); err != nil {
			return nil, nil, errNoMemory
		}
		defer reconcile.turn.Release(1)
	} else {
		reconcile = newReading()
	}

	var read bytes.Buffer

	fits, err := reconcile.read(&read, body, size, memory)
	if fits || err != nil {
		return read.Bytes(), func() {}, err
	}

	free, err := acquire(ctx, m.responses, namespace, largeMemory)
	if err != nil {
		return nil, nil, err
	}

	fits, err = reconcile.read(&read, body, largeBody, largeMemory)
	if err == nil && !fits {
		err = fmt.Errorf("a response takes more than %d MiB, or %d MiB of memory", largeBody>>20, largeMemory>>20)
	}

	if err != nil {
		free()
		return nil, nil, err
	}

	// It is decoded after it was read.
	later := decodeTime * time.Duration(1+read.Len()>>20)

	return read.Bytes(), func() { time.AfterFunc(later, free) }, nil
}

// decodeTime is how long it takes at most to decode a MiB.
const decodeTime = 100 * time.Millisecond

// read continues to read a response, and reports whether that and what it is decoded to do not take more than a size
// and an amount of memory.
func (r *reading) read(into *bytes.Buffer, from io.Reader, size, memory int64) (fits bool, err error) {
	count, err := io.CopyN(into, from, size+1-int64(into.Len()))
	if countErr := r.count(int(count)); countErr != nil {
		return false, countErr
	}

	if err == nil {
		return false, nil // there is more
	}

	if !errors.Is(err, io.EOF) {
		return false, err
	}

	return decodedSize(into.Bytes()) <= memory, nil
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
