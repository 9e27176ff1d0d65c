package mirror

import (
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

// signatureTag is the tag under which cosign keeps the signatures of what has the digest.
var signatureTag = regexp.MustCompile(`^sha256-[0-9a-f]{64}\.sig$`)

// Attached reports whether the item belongs to another one: a signature, or whatever else refers to
// it.
func (i *Item) IsAttached() bool { return i.subject != "" || signatureTag.MatchString(i.Tag) }

// withAttached are an item and what is attached to it in its registry, where ref leads: cosign's
// signatures under their tag, and all that refers to it. So whoever asks a mirror for signatures
// finds them. named is the item in the mirror. When the registry refuses to tell, the item's note
// does.
func withAttached(ctx context.Context, client *oci.Client, ref, named oci.Reference, item *Item) ([]*Item, error) {
	found, err := findAttached(ctx, client, ref, item.Root)
	if oci.IsReason(err, oci.Unavailable) {
		return nil, err
	}

	if err != nil {
		item.Note = strings.TrimPrefix(fmt.Sprintf("%s; its signatures cannot be listed: %v", item.Note, err), "; ")
	}

	items := []*Item{item}

	for at, root := range found {
		name := named.WithTag(at.Tag).WithDigest(at.Digest)

		attached, err := newItem(ctx, name, root, client.Repository(ref))
		if err != nil {
			return nil, oci.WrapError("read", at.String(), err)
		}

		attached.Note = "attached to " + item.Name
		items = append(items, attached)
	}

	slices.SortFunc(items[1:], func(a, b *Item) int { return strings.Compare(a.Name, b.Name) })

	return items, nil
}

// findAttached lists what is attached to a manifest, by where it is in the registry: a tag, or a
// digest alone.
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

// subjectOf is the digest of what a manifest refers to; empty when it refers to nothing.
func subjectOf(ctx context.Context, source content.ReadOnlyStorage, root ocispec.Descriptor) (digest.Digest, error) {
	data, err := content.FetchAll(ctx, source, root)
	if err != nil {
		return "", err
	}

	var manifest struct {
		Subject *ocispec.Descriptor `json:"subject"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil || manifest.Subject == nil {
		return "", nil //nolint:nilerr // whoever walks it says what is wrong
	}

	return manifest.Subject.Digest, nil
}

// successors are what a manifest lists, without what it refers to: that is an item of its own.
func (i *Item) successors(
	ctx context.Context,
	fetcher content.Fetcher,
	desc ocispec.Descriptor,
) ([]ocispec.Descriptor, error) {
	all, err := content.Successors(ctx, fetcher, desc)
	return slices.DeleteFunc(all, func(d ocispec.Descriptor) bool { return i.subject != "" && d.Digest == i.subject }), err
}
