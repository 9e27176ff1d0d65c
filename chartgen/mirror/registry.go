package mirror

import (
	"context"

	"oras.land/oras-go/v2/content"

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
func (r *Registry) open(ctx context.Context, item *Item) (content.Storage, func(context.Context) error, error) {
	ref := r.Base.Join(item.Repository)
	to := r.Client.Repository(ref)
	keep := func(context.Context) error { return nil }

	if item.Tag == "" {
		return to, keep, nil
	}

	ref = ref.WithTag(item.Tag)
	existing, err := r.Client.Resolve(ctx, ref)

	switch {
	case transport.Is(err, transport.NotFound):
	case err != nil:
		return nil, nil, err
	case existing.Digest == item.Root.Digest:
		return to, keep, nil
	case !r.mayMove(item):
		return nil, nil, oci.NewConflictError("push", ref, existing, item.Root)
	}

	return to, func(ctx context.Context) error {
		return oci.WrapError("tag", ref.String(), to.Tag(ctx, item.Root, item.Tag))
	}, nil
}

// mayMove reports whether an existing tag may be moved. The tag with cosign's signatures of an item
// always may: it moves whenever a signature is added.
func (r *Registry) mayMove(item *Item) bool {
	return item.IsSignature() || r.Overwrite && !item.IsChart()
}
