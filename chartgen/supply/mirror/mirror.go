// Package mirror copies what providers need, their charts and container images, to where there is
// no internet: from the registries where it is published to a registry of one's own, or to one
// archive and from that to the registry. What is there already is not copied again, so a copy that
// was interrupted goes on where it stopped. Memory does not depend on sizes: blobs are streamed.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// chartsFolder is the path of charts in a mirror, beside the images.
const chartsFolder = "charts"

// attempts is how often an item is tried in all when connections are cut; each goes on where the
// last stopped.
const maxAttempts = 4

// Item is an image or a chart to be mirrored.
type Item struct {
	// Name is what it is called where it comes from: an image's full name, or
	// charts/<name>:<version> for a chart.
	Name string
	// Repository is its path in a mirror, Tag its tag there. An image that is referred to by its
	// digest alone has no tag.
	Repository, Tag string
	// Root is the manifest or index.
	Root ocispec.Descriptor
	// Size is the number of bytes of all that belongs to it, manifests included.
	Size int64
	// Note says what a person should know about it, if there is something.
	Note string

	subject digest.Digest // what it refers to, if it does
	source  content.ReadOnlyStorage
	blobs   []ocispec.Descriptor // all that belongs to it, Root last
}

// IsChart reports whether the item is a chart.
func (i *Item) IsChart() bool { return strings.HasPrefix(i.Name, chartsFolder+"/") }

// Observer is told how a copy goes, from several goroutines at a time.
type Observer interface {
	// Copied counts bytes that have been copied, or that were there already; the counts of an item
	// come to its size in the end. Bytes that are lost with a connection and copied again are taken
	// back by a negative count.
	Copied(item *Item, bytes int64, present bool)
	// Finished is called once for each item; present says that there was nothing to do.
	Finished(item *Item, present bool, err error)
}

// Target is where a mirror is made.
type Target interface {
	// put makes the storage of an item ready, reports whether the item is there already, and what
	// names it when it is copied.
	prepare(
		ctx context.Context,
		item *Item,
	) (storage content.Storage, present bool, name func(context.Context) error, err error)
}

// Options of a copy.
type Options struct {
	// Parallel is how many items are copied at a time; each copies up to three blobs at a time.
	Parallel int
	Observer Observer
}

// Copy copies items, and what is attached to others after these. It goes on when one fails, and its
// error names all that did.
func Copy(ctx context.Context, items []*Item, target Target, o Options) error {
	attached := slices.DeleteFunc(slices.Clone(items), func(i *Item) bool { return !i.IsAttached() })
	others := slices.DeleteFunc(slices.Clone(items), (*Item).IsAttached)
	// where a registry keeps no list of referrers, each copy rewrites one
	oneByOne := Options{Parallel: 1, Observer: o.Observer}

	return errors.Join(copyAll(ctx, others, target, o), copyAll(ctx, attached, target, oneByOne))
}

func copyAll(ctx context.Context, items []*Item, target Target, o Options) error {
	var group errgroup.Group
	group.SetLimit(max(1, o.Parallel))

	failures := make([]error, len(items))
	for n, item := range items {
		group.Go(func() error {
			present, err := copyItem(ctx, item, target, o.Observer)
			if err != nil {
				failures[n] = fmt.Errorf("mirror %s: %w", item.Name, err)
			}

			o.Observer.Finished(item, present, err)

			return nil
		})
	}

	_ = group.Wait() // the errors are in failures

	return errors.Join(failures...)
}

func copyItem(ctx context.Context, item *Item, target Target, observer Observer) (present bool, err error) {
	storage, present, name, err := target.prepare(ctx, item)
	if err != nil || present {
		observer.Copied(item, item.Size, true)
		return present, err
	}

	source := &countedStorage{
		ReadOnlyStorage: item.source,
		count:           func(n int64) { observer.Copied(item, n, false) },
		read:            map[digest.Digest]int64{},
	}
	options := oras.DefaultCopyGraphOptions

	options.FindSuccessors = item.successors
	for attempt := 1; ; attempt++ {
		err = oras.CopyGraph(ctx, source, storage, item.Root, options)
		if err == nil || attempt == maxAttempts || ctx.Err() != nil || !oci.IsTemporary(err) {
			break
		}
	}

	if err != nil {
		return false, oci.WrapError("copy", item.Name, err)
	}

	observer.Copied(item, item.Size-source.total(), true)

	return false, name(ctx)
}

// countedStorage counts what is read of blobs. A blob that is read again counts anew, so the total
// is what was moved in the end.
type countedStorage struct {
	content.ReadOnlyStorage
	count func(int64)

	mu   sync.Mutex
	read map[digest.Digest]int64
}

func (s *countedStorage) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	body, err := s.ReadOnlyStorage.Fetch(ctx, desc)
	if err != nil {
		return nil, err
	}

	s.forget(desc.Digest)

	return &countedBody{ReadCloser: body, count: func(n int64) { s.add(desc.Digest, n) }}, nil
}

func (s *countedStorage) add(blob digest.Digest, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.read[blob] += n
	s.count(n)
}

func (s *countedStorage) forget(blob digest.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.count(-s.read[blob])
	s.read[blob] = 0
}

// total is the number of bytes of the blobs that were read, each counted once.
func (s *countedStorage) total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()

	total := int64(0)
	for _, n := range s.read {
		total += n
	}

	return total
}

type countedBody struct {
	io.ReadCloser
	count func(int64)
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.count(int64(n))

	return n, err
}

// walk finds all that belongs to a manifest or index, each once, and its size.
func (i *Item) walk(ctx context.Context) error {
	seen := map[string]bool{}
	i.blobs, i.Size = nil, 0

	var visit func(desc ocispec.Descriptor) error

	visit = func(desc ocispec.Descriptor) error {
		if seen[desc.Digest.String()] {
			return nil
		}

		seen[desc.Digest.String()] = true

		successors, err := i.successors(ctx, i.source, desc)
		if err != nil {
			return err
		}

		for _, s := range successors {
			if err := visit(s); err != nil {
				return err
			}
		}

		i.blobs = append(i.blobs, desc)
		i.Size += desc.Size

		return nil
	}

	return visit(i.Root)
}

// TotalSize is the number of bytes of all items, what they share counted once.
func TotalSize(items []*Item) int64 {
	total, seen := int64(0), map[string]bool{}

	for _, item := range items {
		for _, b := range item.blobs {
			if !seen[b.Digest.String()] {
				seen[b.Digest.String()] = true
				total += b.Size
			}
		}
	}

	return total
}

// sortItems orders items: charts first, then images, by name; the same thing twice is once.
func sortItems(items []*Item) []*Item {
	slices.SortFunc(items, func(a, b *Item) int {
		if a.IsChart() != b.IsChart() {
			if a.IsChart() {
				return -1
			}

			return 1
		}

		return strings.Compare(a.Name, b.Name)
	})

	return slices.CompactFunc(items, func(a, b *Item) bool { return a.Name == b.Name })
}
