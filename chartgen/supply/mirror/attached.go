package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// signatureTag matches the tags under which cosign stores signatures. The tag contains the digest of
// the signed manifest.
var signatureTag = regexp.MustCompile(`^sha256-[0-9a-f]{64}\.sig$`)

// IsAttached reports whether the item belongs to another one: a signature, or any other manifest with
// a subject.
func (i *Item) IsAttached() bool { return i.subject != "" || signatureTag.MatchString(i.Tag) }

// withAttached returns an item together with everything that is attached to it at ref, so that
// signatures can be verified in the mirror too. Mirrored is the reference of the item in the mirror.
//
// If the registry refuses to list what is attached, the item gets a note instead.
func withAttached(
	ctx context.Context,
	client *oci.Client,
	ref, mirrored oci.Reference,
	item *Item,
) ([]*Item, error) {
	found, err := findAttached(ctx, client, ref, item.Root)
	if oci.IsReason(err, oci.Unavailable) {
		return nil, err
	}

	if err != nil {
		note := fmt.Sprintf("its signatures cannot be listed: %v", err)
		if item.Note != "" {
			note = item.Note + "; " + note
		}

		item.Note = note
	}

	var attached []*Item

	for at, root := range found {
		a, err := newItem(ctx, mirrored.WithTag(at.Tag).WithDigest(at.Digest), root, client.Repository(ref))
		if err != nil {
			return nil, oci.WrapError("read", at.String(), err)
		}

		a.Note = "attached to " + item.Name
		attached = append(attached, a)
	}

	slices.SortFunc(attached, func(a, b *Item) int { return cmp.Compare(a.Name, b.Name) })

	return append([]*Item{item}, attached...), nil
}

// findAttached returns what is attached to a manifest, by its reference: cosign's signatures have a
// tag, everything else only a digest. The result is valid even if there is an error.
func findAttached(
	ctx context.Context,
	client *oci.Client,
	ref oci.Reference,
	subject ocispec.Descriptor,
) (map[oci.Reference]ocispec.Descriptor, error) {
	found := map[oci.Reference]ocispec.Descriptor{}

	referrers, err := client.Referrers(ctx, ref.WithDigest(subject.Digest), subject)
	for _, r := range referrers {
		found[ref.WithTag("").WithDigest(r.Digest)] = ocispec.Descriptor{
			MediaType: r.MediaType,
			Digest:    r.Digest,
			Size:      r.Size,
		}
	}

	if err != nil {
		return found, err
	}

	tagged := ref.WithTag(strings.Replace(subject.Digest.String(), ":", "-", 1) + ".sig")

	signatures, err := client.Resolve(ctx, tagged)
	if oci.IsReason(err, oci.NotFound) {
		return found, nil
	}

	if err == nil {
		found[tagged] = signatures
	}

	return found, err
}

// subjectOf returns the digest of the manifest that another one refers to; empty if there is none.
func subjectOf(ctx context.Context, source content.ReadOnlyStorage, root ocispec.Descriptor) (digest.Digest, error) {
	data, err := content.FetchAll(ctx, source, root)
	if err != nil {
		return "", err
	}

	var manifest struct {
		Subject *ocispec.Descriptor `json:"subject"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil || manifest.Subject == nil {
		return "", nil //nolint:nilerr // walk returns the error of a manifest that cannot be parsed
	}

	return manifest.Subject.Digest, nil
}

// successors returns what a manifest refers to except for its subject, which is an item of its own.
func (i *Item) successors(
	ctx context.Context,
	fetcher content.Fetcher,
	desc ocispec.Descriptor,
) ([]ocispec.Descriptor, error) {
	all, err := content.Successors(ctx, fetcher, desc)
	if err != nil || i.subject == "" {
		return all, err
	}

	return slices.DeleteFunc(all, func(d ocispec.Descriptor) bool { return d.Digest == i.subject }), nil
}
