package mirror

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// chartsFolder is the path of charts in a mirror.
const chartsFolder = "charts"

// Item is an image or a chart, together with everything that refers to it, such as signatures and attestations; or a
// signature that cosign has stored under a tag.
type Item struct {
	// Name is the full name of an image where it comes from, or charts/<name>:<version>.
	Name string
	// Repository is the path in a mirror.
	Repository string
	// Tag in a mirror; empty if the item is referenced by its digest only.
	Tag string
	// Root is the manifest or index.
	Root ocispec.Descriptor
	// Size is the number of bytes of all manifests and blobs.
	Size int64
	// Note is a remark for users, for example about platforms; usually empty.
	Note string

	source    content.ReadOnlyGraphStorage
	referrers []referrer              // the manifests that refer to Root, and those that refer to them
	sizes     map[digest.Digest]int64 // of all manifests and blobs
}

// referrer is a manifest that refers to another one.
type referrer struct{ manifest, subject ocispec.Descriptor }

// newItem returns the item of a reference, which gets the reference's path and tag in a mirror.
func newItem(
	ctx context.Context,
	ref oci.Reference,
	root ocispec.Descriptor,
	source content.ReadOnlyGraphStorage,
) (*Item, error) {
	item := &Item{
		Name:       strings.TrimPrefix(ref.Name(), "/"), // references of charts have no registry
		Repository: ref.Repository,
		Tag:        ref.Tag,
		Root:       root,
		source:     source,
		sizes:      map[digest.Digest]int64{},
	}

	if err := item.add(ctx, root); err != nil {
		return item, err
	}

	return item, item.addReferrers(ctx, root)
}

// addReferrers adds everything that refers to a manifest. If the registry refuses to list that, the item gets a note
// instead.
func (i *Item) addReferrers(ctx context.Context, subject ocispec.Descriptor) error {
	referrers, err := registry.Referrers(ctx, i.source, subject, "")
	if err != nil {
		return i.withoutSignatures(err)
	}

	for _, r := range referrers {
		if _, known := i.sizes[r.Digest]; known {
			continue
		}

		manifest := ocispec.Descriptor{MediaType: r.MediaType, Digest: r.Digest, Size: r.Size}
		if err := i.add(ctx, manifest); err != nil {
			return err
		}

		i.referrers = append(i.referrers, referrer{manifest: manifest, subject: subject})

		if err := i.addReferrers(ctx, manifest); err != nil {
			return err
		}
	}

	return nil
}

// add adds a manifest or blob, and everything that it refers to.
func (i *Item) add(ctx context.Context, desc ocispec.Descriptor) error {
	if _, known := i.sizes[desc.Digest]; known {
		return nil
	}

	i.sizes[desc.Digest] = desc.Size
	i.Size += desc.Size

	successors, err := content.Successors(ctx, i.source, desc)
	if err != nil {
		return err
	}

	for _, s := range successors {
		if err := i.add(ctx, s); err != nil {
			return err
		}
	}

	return nil
}

// withoutSignatures notes why signatures are not copied, unless the error may go away.
func (i *Item) withoutSignatures(err error) error {
	err = oci.WrapError("list the signatures of", i.Name, err)
	if transport.Is(err, transport.Unavailable) {
		return err
	}

	i.note(fmt.Sprintf("its signatures cannot be read: %v", err))

	return nil
}

// note adds a remark for users.
func (i *Item) note(text string) {
	if i.Note != "" {
		text = i.Note + "; " + text
	}

	i.Note = text
}

// roots returns the manifests that no other manifest of the item contains: its own, and those that refer to it.
func (i *Item) roots() []ocispec.Descriptor {
	roots := make([]ocispec.Descriptor, 0, 1+len(i.referrers))
	roots = append(roots, i.Root)

	for _, r := range i.referrers {
		roots = append(roots, r.manifest)
	}

	return roots
}

// IsChart reports whether the item is a chart.
func (i *Item) IsChart() bool { return strings.HasPrefix(i.Name, chartsFolder+"/") && !i.IsSignature() }

// signatureTag matches the tags under which cosign stores signatures. The tag contains the digest of
// the signed manifest.
var signatureTag = regexp.MustCompile(`^sha256-[0-9a-f]{64}\.sig$`)

// IsSignature reports whether the item is a signature that cosign has stored under a tag.
func (i *Item) IsSignature() bool { return signatureTag.MatchString(i.Tag) }

// TotalSize returns the number of bytes of all items. What several items share is counted once.
func TotalSize(items []*Item) int64 {
	sizes := map[digest.Digest]int64{}
	for _, item := range items {
		maps.Copy(sizes, item.sizes)
	}

	total := int64(0)
	for _, size := range sizes {
		total += size
	}

	return total
}
