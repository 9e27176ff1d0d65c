// Package mirror copies what providers need, their charts and container images, to environments
// without internet access: from public registries to a private one, or to an archive that is carried
// over and copied to the private registry from there.
//
// What the target has already is not copied, so an interrupted copy can be continued by starting it
// again. Blobs are streamed: memory use does not depend on their size.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// Target is a mirror to copy to: a *Registry or an *Archive.
type Target interface {
	// open returns where to copy an item to, and what makes it available under its name once everything is copied.
	open(ctx context.Context, item *Item) (to content.Storage, finish finishFunc, err error)
}

// finishFunc makes an item available that was copied from a source.
type finishFunc func(ctx context.Context, source content.Fetcher) error

// Result is the result of copying an item.
type Result struct {
	// Copied is the number of bytes that the target did not have.
	Copied int64
	// Err is why the item was not copied.
	Err error
}

// Options of a copy. The functions are called concurrently.
type Options struct {
	// Parallel is the number of items that are copied at the same time, at least 1. For each, up to
	// three blobs are copied at the same time.
	Parallel int
	// Progress is called whenever bytes were copied; nil for none.
	Progress func(bytes int64)
	// Finished is called once for each item; nil for none.
	Finished func(item *Item, result Result)
}

// Copy copies items to a target. A failure does not stop the other items; the error names all that failed, and each
// cause once.
func Copy(ctx context.Context, items []*Item, target Target, o Options) error {
	var group errgroup.Group
	group.SetLimit(max(1, o.Parallel))

	results := make([]Result, len(items))

	for n, item := range items {
		group.Go(func() error {
			results[n] = copyItem(ctx, item, target, o.Progress)

			if o.Finished != nil {
				o.Finished(item, results[n])
			}

			return nil
		})
	}

	_ = group.Wait() // the functions return no errors

	return failure(items, results)
}

// failure returns the error of a copy.
func failure(items []*Item, results []Result) error {
	names := map[string][]string{} // by cause

	for n, result := range results {
		if result.Err == nil {
			continue
		}

		cause := result.Err.Error()
		if e := new(transport.Error); errors.As(result.Err, &e) {
			cause = e.Message() // without the item's reference
		}

		names[cause] = append(names[cause], items[n].Name)
	}

	all := make([]error, 0, len(names))
	for _, cause := range slices.Sorted(maps.Keys(names)) {
		all = append(all, fmt.Errorf("mirror %s: %s", strings.Join(names[cause], ", "), cause))
	}

	return errors.Join(all...)
}

// The time to copy an item: that of all requests, and as if a slow line carried its bytes. A line that carries none is
// noticed sooner.
const (
	copyTime = 15 * time.Minute
	minRate  = 4 << 10 // bytes per second
)

// copyItem copies one item.
func copyItem(ctx context.Context, item *Item, target Target, progress func(int64)) Result {
	ctx, cancel := context.WithTimeout(ctx, copyTime+time.Duration(item.Size/minRate)*time.Second)
	defer cancel()

	to, finish, err := target.open(ctx, item)
	if err != nil {
		return Result{Err: err}
	}

	var copied atomic.Int64

	source := &countingStorage{ReadOnlyStorage: item.source, count: func(n int64) {
		copied.Add(n)

		if progress != nil {
			progress(n)
		}
	}}

	for _, root := range item.roots() {
		if err := oras.CopyGraph(ctx, source, to, root, oras.DefaultCopyGraphOptions); err != nil {
			return Result{Err: oci.WrapError("copy", item.Name, err)}
		}
	}

	err = finish(ctx, source)

	return Result{Copied: copied.Load(), Err: err}
}

// countingStorage counts the bytes that are read from a storage.
type countingStorage struct {
	content.ReadOnlyStorage
	count func(int64)
}

// Fetch returns a blob whose bytes are counted.
func (s *countingStorage) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	body, err := s.ReadOnlyStorage.Fetch(ctx, desc)
	if err != nil {
		return nil, err
	}

	return &countingBody{ReadCloser: body, count: s.count}, nil
}

// countingBody calls count with the number of bytes of each Read.
type countingBody struct {
	io.ReadCloser
	count func(int64)
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.count(int64(n))

	return n, err
}
