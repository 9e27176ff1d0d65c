package mirror

import (
	"context"

	"oras.land/oras-go/v2/content"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Registry is a mirror in a registry: images have the paths that they have elsewhere, charts are
// below charts/.
type Registry struct {
	Client *oci.Client
	// Base is the path of the mirror.
	Base oci.Reference
	// Overwrite lets an image's tag move to what its own registry has now; else that is an error. A
	// chart's tag never moves.
	Overwrite bool
}

// ChartRepository is what the operator's flag --chart-repository must be to use the mirror.
func (r *Registry) ChartRepository() string { return r.Base.Join(chartsFolder).String() }

// ImageRegistry is what the operator's flag --image-registry must be to use the mirror.
func (r *Registry) ImageRegistry() string { return r.Base.Location() }

func (r *Registry) prepare(ctx context.Context, item *Item) (content.Storage, bool, func(context.Context) error, error) {
	ref := r.Base.Join(item.Repository)
	if item.Tag == "" {
		ref = ref.WithDigest(item.Root.Digest)
	} else {
		ref = ref.WithTag(item.Tag)
	}

	existing, err := r.Client.Resolve(ctx, ref)
	switch {
	case err == nil && existing.Digest == item.Root.Digest:
		return nil, true, nil, nil
	case err == nil && !item.IsAttached() && (item.IsChart() || !r.Overwrite): // signatures under a tag become more
		return nil, false, nil, oci.NewConflictError("push", ref, existing, item.Root)
	case err != nil && !oci.IsReason(err, oci.NotFound):
		return nil, false, nil, err
	}

	repository := r.Client.Repository(ref)

	return repository, false, func(ctx context.Context) error {
		if item.Tag == "" {
			return nil
		}

		return oci.WrapError("tag", ref.String(), repository.Tag(ctx, item.Root, item.Tag))
	}, nil
}
