package oci

import (
	"context"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxReferrers bounds the signatures of one artifact that are looked at.
const maxReferrers = 100

// Referrers lists what refers to the manifest of a pinned reference: its signatures, for example.
// Registries without that API are asked for the tag that stands in for it.
func (c *Client) Referrers(
	ctx context.Context,
	ref Reference,
	subject ocispec.Descriptor,
) ([]ocispec.Descriptor, error) {
	const action = "list the signatures of"

	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()

	var all []ocispec.Descriptor

	err := c.Repository(ref).Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		if all = append(all, page...); len(all) > maxReferrers {
			return newInvalidError(action, ref, "more than %d", maxReferrers)
		}

		return nil
	})

	return all, wrapError(action, ref, err)
}
