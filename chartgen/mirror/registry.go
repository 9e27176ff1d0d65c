package mirror

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// Registry is a mirror in a registry. Images keep their paths; charts are below charts/.
type Registry struct {
	Client *oci.Client
	// Base is the parent of all repositories of the mirror.
	Base oci.Reference
	// Overwrite allows the tags of images to move if they moved in the original registry; otherwise
	// that is an error. Tags of charts never move.
	Overwrite bool
}

// ChartRepository returns the value of the operator's flag --chart-repository to use the mirror.
func (r *Registry) ChartRepository() string { return r.Base.Join(chartsFolder).String() }

// ImageRegistry returns the value of the operator's flag --image-registry to use the mirror.
func (r *Registry) ImageRegistry() string { return r.Base.Location() }

// open returns the item's repository, after it has checked what the registry has under the tag.
func (r *Registry) open(ctx context.Context, item *Item) (content.Storage, finishFunc, error) {
	ref := r.Base.Join(item.Repository)
	to := r.Client.Repository(ref)

	isTagged, err := r.isTagged(ctx, item)
	if err != nil {
		return nil, nil, err
	}

	return to, func(ctx context.Context, source content.Fetcher) error {
		if err := indexReferrers(ctx, source, to, item.referrers); err != nil {
			return oci.WrapError("list the signatures of", ref.String(), err)
		}

		if isTagged {
			return nil
		}

		return oci.WrapError("tag", ref.WithTag(item.Tag).String(), to.Tag(ctx, item.Root, item.Tag))
	}, nil
}

// isTagged reports whether the registry has the item under its tag, or the item has none. Another item under a tag
// that may not move is an error.
func (r *Registry) isTagged(ctx context.Context, item *Item) (bool, error) {
	if item.Tag == "" {
		return true, nil
	}

	ref := r.Base.Join(item.Repository).WithTag(item.Tag)
	existing, err := r.Client.Resolve(ctx, ref)

	switch {
	case transport.Is(err, transport.NotFound):
		return false, nil
	case err != nil:
		return false, err
	case existing.Digest == item.Root.Digest:
		return true, nil
	case !r.mayMove(item):
		return false, oci.NewConflictError("push", ref, existing, item.Root)
	}

	return false, nil
}

// indexing is how long to try that a registry lists all referrers: about half a minute.
var indexing = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 8}

// indexReferrers makes a repository list the referrers, which it has already.
//
// A registry with the referrers API lists them by itself. For any other, the client writes the list, under a tag and
// without a lock: it lacks what an interrupted copy had no time to add, or what another client has just overwritten. So
// the list is read, and what is missing is pushed again, until it is complete.
func indexReferrers(ctx context.Context, source content.Fetcher, to *remote.Repository, referrers []referrer) error {
	var missing []referrer

	err := wait.ExponentialBackoffWithContext(ctx, indexing, func(ctx context.Context) (done bool, err error) {
		if missing, err = unlisted(ctx, to, referrers); err != nil || len(missing) == 0 {
			return true, err
		}

		for _, r := range missing {
			data, err := content.FetchAll(ctx, source, r.manifest)
			if err != nil {
				return false, err
			}

			if err := to.Push(ctx, r.manifest, bytes.NewReader(data)); err != nil {
				return false, err
			}
		}

		return false, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return &transport.Error{
			Problem: fmt.Sprintf("it does not list %d of %d, although it has them", len(missing), len(referrers)),
			Fix:     "run the command again; if that does not help, check whether the tag sha256-… may be written",
		}
	}

	return err
}

// unlisted returns the referrers that a repository does not list as those of their subjects.
func unlisted(ctx context.Context, to *remote.Repository, referrers []referrer) ([]referrer, error) {
	listed := map[digest.Digest][]ocispec.Descriptor{} // by subject

	var missing []referrer

	for _, r := range referrers {
		if _, known := listed[r.subject.Digest]; !known {
			found, err := listReferrers(ctx, to, r.subject)
			if err != nil {
				return nil, err
			}

			listed[r.subject.Digest] = found
		}

		isManifest := func(d ocispec.Descriptor) bool { return d.Digest == r.manifest.Digest }
		if !slices.ContainsFunc(listed[r.subject.Digest], isManifest) {
			missing = append(missing, r)
		}
	}

	return missing, nil
}

// mayMove reports whether an existing tag may be moved. The tag with cosign's signatures of an item
// always may: it moves whenever a signature is added.
func (r *Registry) mayMove(item *Item) bool {
	return item.IsSignature() || r.Overwrite && !item.IsChart()
}
