package mirror

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"

	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// Limits of what a registry or an archive says of an item, which is read before anything is copied. Images have at most
// a few hundred manifests and layers, and signatures are seldom signed again.
const (
	// maxContent is the maximum number of manifests and blobs of an item.
	maxContent = 10000
	// maxItemSize is the maximum size of an item in bytes.
	maxItemSize = 1 << 40
	// maxManifest is the maximum size of a manifest in bytes, and maxManifestValues that of its values.
	maxManifest       = 4 << 20
	maxManifestValues = 100000
	// maxReferrals is how many referrers may follow one another: the signature of an attestation of an image are two.
	maxReferrals = 4
	// maxLookup limits the time to find out what belongs to an item.
	maxLookup = 10 * time.Minute
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

	ctx, cancel := context.WithTimeout(ctx, maxLookup)
	defer cancel()

	if err := item.add(ctx, root); err != nil {
		return item, err
	}

	return item, item.addReferrers(ctx, root, maxReferrals)
}

// addReferrers adds everything that refers to a manifest, of which as many may follow one another as are left. If the
// registry refuses to list that, the item gets a note instead.
func (i *Item) addReferrers(ctx context.Context, subject ocispec.Descriptor, left int) error {
	referrers, err := listReferrers(ctx, i.source, subject)
	if err != nil {
		return i.withoutSignatures(err)
	}

	for _, r := range referrers {
		if _, counted := i.sizes[r.Digest]; counted {
			continue
		}

		if left == 0 {
			return invalid("what refers to it is referred to itself, more than %d times over", maxReferrals)
		}

		manifest := ocispec.Descriptor{MediaType: r.MediaType, Digest: r.Digest, Size: r.Size}
		if err := i.add(ctx, manifest); err != nil {
			return err
		}

		i.referrers = append(i.referrers, referrer{manifest: manifest, subject: subject})

		if err := i.addReferrers(ctx, manifest, left-1); err != nil {
			return err
		}
	}

	return nil
}

// add adds a manifest or blob, and everything that it refers to.
func (i *Item) add(ctx context.Context, desc ocispec.Descriptor) error {
	if _, counted := i.sizes[desc.Digest]; counted {
		return nil
	}

	switch {
	case len(i.sizes) == maxContent:
		return invalid("more than %d manifests and layers", maxContent)
	case desc.Size < 0 || desc.Size > maxItemSize-i.Size:
		return invalid("a negative size, or more than %d TiB in all", maxItemSize>>40)
	}

	i.sizes[desc.Digest] = desc.Size
	i.Size += desc.Size

	fetch := func(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
		data, err := readManifest(ctx, i.source, desc)
		return io.NopCloser(bytes.NewReader(data)), err
	}

	successors, err := content.Successors(ctx, content.FetcherFunc(fetch), desc)
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

// readManifest reads a manifest whose size, and what it is decoded to, are limited.
func readManifest(ctx context.Context, source content.Fetcher, desc ocispec.Descriptor) ([]byte, error) {
	if err := ctx.Err(); err != nil { // archives do not look
		return nil, err
	}

	if desc.Size > maxManifest {
		return nil, invalid("a manifest of %d bytes; %d is the limit", desc.Size, maxManifest)
	}

	data, err := content.FetchAll(ctx, source, desc)
	if err == nil && limit.List(data, maxManifestValues) != nil {
		err = invalid("a manifest with more than %d values", maxManifestValues)
	}

	return data, err
}

// listReferrers returns the manifests that refer to another one, of which there is a limited number.
func listReferrers(
	ctx context.Context, source content.ReadOnlyGraphStorage, subject ocispec.Descriptor,
) ([]ocispec.Descriptor, error) {
	lister, isRegistry := source.(registry.ReferrerLister)
	if !isRegistry {
		return registry.Referrers(ctx, source, subject, "")
	}

	var all []ocispec.Descriptor

	err := lister.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		if all = append(all, page...); len(all) > maxContent {
			return invalid("more than %d", maxContent)
		}

		return nil
	})

	return all, err
}

// invalid returns the error of content that no image or chart has.
func invalid(format string, args ...any) error {
	return &transport.Error{Kind: transport.Invalid, Problem: fmt.Sprintf(format, args...)}
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
