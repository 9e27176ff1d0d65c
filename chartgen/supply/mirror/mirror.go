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
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// maxAttempts is how often an item is tried if connections are cut. Each attempt continues where the
// previous one stopped.
const maxAttempts = 4

// Target is a mirror to copy to: a *Registry or an *Archive.
type Target interface {
	// prepare returns where to copy an item to.
	prepare(ctx context.Context, item *Item) (*destination, error)
}

// destination is where an item is copied to.
type destination struct {
	// upToDate reports that the target has the item already. The other fields are not set then.
	upToDate bool
	// storage receives the blobs and manifests.
	storage content.Storage
	// finish makes the item available under its name. It is called after everything is copied.
	finish func(context.Context) error
}

// Observer is informed about the progress of a copy. Its methods are called concurrently.
//
// The bytes that are copied and skipped add up to the size of an item in the end, unless it fails.
type Observer interface {
	// Copied reports copied bytes. The number is negative if bytes were lost with a connection and
	// are copied again.
	Copied(item *Item, bytes int64)
	// Skipped reports bytes that the target has already.
	Skipped(item *Item, bytes int64)
	// Finished is called once for each item.
	Finished(item *Item, result Result)
}

// Result is the result of copying an item.
type Result struct {
	// UpToDate reports that the target had the complete item already.
	UpToDate bool
	// Err is why the item was not copied.
	Err error
}

// Options of a copy.
type Options struct {
	// Parallel is the number of items that are copied at the same time, at least 1. For each, up to
	// three blobs are copied at the same time.
	Parallel int
	// Observer is informed about the progress.
	Observer Observer
}

// Copy copies items to a target. Items that are attached to others are copied after these. A failure
// does not stop the other items; the error names all that failed, and each cause once.
func Copy(ctx context.Context, items []*Item, target Target, o Options) error {
	attached := slices.DeleteFunc(slices.Clone(items), func(i *Item) bool { return !i.IsAttached() })
	others := slices.DeleteFunc(slices.Clone(items), (*Item).IsAttached)

	// without the referrers API, each copy of an attached item rewrites the same list
	sequential := Options{Parallel: 1, Observer: o.Observer}

	return failure(slices.Concat(copyAll(ctx, others, target, o), copyAll(ctx, attached, target, sequential)))
}

// failed is an item that was not copied.
type failed struct {
	name string
	err  error
}

// copyAll copies items in parallel.
func copyAll(ctx context.Context, items []*Item, target Target, o Options) []failed {
	var group errgroup.Group
	group.SetLimit(max(1, o.Parallel))

	failures := make([]failed, len(items))

	for n, item := range items {
		group.Go(func() error {
			result := copyItem(ctx, item, target, o.Observer)
			failures[n] = failed{item.Name, result.Err}

			o.Observer.Finished(item, result)

			return nil
		})
	}

	_ = group.Wait() // the functions return no errors

	return slices.DeleteFunc(failures, func(f failed) bool { return f.err == nil })
}

// failure returns the error of a copy.
func failure(failures []failed) error {
	var causes []string

	names, errs := map[string][]string{}, map[string]error{}

	for _, f := range failures {
		cause := f.err.Error()
		if e := new(oci.Error); errors.As(f.err, &e) {
			cause = e.Message // without the item's reference
		}

		if errs[cause] == nil {
			causes, errs[cause] = append(causes, cause), f.err
		} else {
			errs[cause] = errors.New(cause)
		}

		names[cause] = append(names[cause], f.name)
	}

	all := make([]error, 0, len(causes))
	for _, cause := range causes {
		all = append(all, fmt.Errorf("mirror %s: %w", strings.Join(names[cause], ", "), errs[cause]))
	}

	return errors.Join(all...)
}

// copyItem copies one item.
func copyItem(ctx context.Context, item *Item, target Target, observer Observer) Result {
	to, err := target.prepare(ctx, item)
	if err != nil {
		return Result{Err: err}
	}

	if to.upToDate {
		observer.Skipped(item, item.Size)
		return Result{UpToDate: true}
	}

	source := newCountingStorage(item.source, func(n int64) { observer.Copied(item, n) })
	options := oras.DefaultCopyGraphOptions
	options.FindSuccessors = item.successors

	for attempt := 1; ; attempt++ {
		err = oras.CopyGraph(ctx, source, to.storage, item.Root, options)
		if err == nil || attempt == maxAttempts || ctx.Err() != nil || !oci.IsTemporary(err) {
			break
		}
	}

	if err != nil {
		return Result{Err: oci.WrapError("copy", item.Name, err)}
	}

	observer.Skipped(item, item.Size-source.total())

	return Result{Err: to.finish(ctx)}
}
