package oci

import (
	"context"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Image reads the manifest of an image for one platform. Of an index it chooses linux/amd64, or
// else the first platform with linux.
//
// The pinned reference names what ref resolves to, which usually is the index: container runtimes
// on any platform can pull it.
func (c *Client) Image(ctx context.Context, ref Reference) (pinned Reference, image *Artifact, err error) {
	desc, err := c.Resolve(ctx, ref)
	if err != nil {
		return ref, nil, err
	}

	pinned = ref.WithDigest(desc.Digest)
	if !IsIndex(desc) {
		image, err = c.Artifact(ctx, pinned)
		return pinned, image, err
	}

	platforms, err := c.Index(ctx, pinned)
	if err != nil {
		return pinned, nil, err
	}

	platforms = slices.DeleteFunc(platforms, func(d ocispec.Descriptor) bool {
		return d.Platform == nil || d.Platform.OS != "linux"
	})
	if len(platforms) == 0 {
		return pinned, nil, newInvalidError("pull", ref, "holds no image for linux")
	}

	chosen := slices.IndexFunc(platforms, func(d ocispec.Descriptor) bool { return d.Platform.Architecture == "amd64" })
	if chosen < 0 {
		chosen = 0
	}

	image, err = c.Artifact(ctx, pinned.WithDigest(platforms[chosen].Digest))

	return pinned, image, err
}

// Files reads the regular files in some folders of an image, as a container would see them: newer
// layers win over older ones, and files that they delete are gone. Keys of the result are paths
// from the root without a leading slash, for example "capi-manifests/metadata.yaml"; folders are
// given in the same form.
//
// Layers are streamed from the newest to the oldest, until isComplete reports that the files found so
// far are all the caller needs. A symbolic link in one of the folders is an error of reason Invalid,
// as is an image that exceeds the limits of this package.
func (c *Client) Files(
	ctx context.Context,
	image *Artifact,
	folders []string,
	isComplete func(files map[string][]byte) bool,
) (map[string][]byte, error) {
	r := &layerReader{
		ref:     image.Reference,
		folders: folders,
		files:   map[string][]byte{},
		limits:  layerLimits{bytes: maxImageBytes, kept: maxImageKept, entries: maxEntries},
	}

	for _, layer := range slices.Backward(image.Manifest.Layers) {
		if err := c.readLayer(ctx, r, layer); err != nil {
			return nil, wrapError("read", image.Reference, err)
		}

		if isComplete(r.files) {
			break
		}
	}

	return r.files, nil
}

// readLayer streams a layer, repeatedly if the connection is interrupted. What was read counts only
// once the layer's digest is verified.
func (c *Client) readLayer(ctx context.Context, r *layerReader, layer ocispec.Descriptor) error {
	return retryInterrupted(ctx, func() error {
		body, err := c.OpenBlob(ctx, r.ref, layer)
		if err != nil {
			return err
		}
		defer body.Close()

		attempt := r.begin()
		if err := attempt.readLayer(body); err != nil {
			return err
		}

		r.commit(attempt)

		return nil
	})
}
