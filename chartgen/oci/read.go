package oci

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// Limits of what is read from a registry.
const (
	// maxManifest is the maximum size of a manifest or index in bytes, which registries enforce too.
	maxManifest = 4 << 20
	// maxManifestValues is the maximum number of values of a manifest or index: each layer or manifest
	// in it takes at least two.
	maxManifestValues = 10000
	// maxAnswer is the maximum size of a list of tags or referrers in bytes.
	maxAnswer = 1 << 20
	// maxAnswerValues is the maximum number of values in it.
	maxAnswerValues = 2 * maxTags
	// maxTags is the maximum number of tags of a repository.
	maxTags = 10000
	// maxPages is the maximum number of pages of a list of tags or referrers.
	maxPages = 200
	// maxReferrers is the maximum number of referrers of a manifest.
	maxReferrers = 100
	// requestTimeout limits requests for anything small.
	requestTimeout = 2 * time.Minute
)

// Tags lists the tags of a repository, in the registry's order.
func (c *Client) Tags(ctx context.Context, ref Reference) ([]string, error) {
	const action = "list the tags of"

	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	var tags []string

	err := c.lists(ref).Tags(ctx, "", func(page []string) error {
		tags = append(tags, page...)
		if len(tags) > maxTags {
			return newInvalidError(action, ref, "more than %d tags", maxTags)
		}

		return nil
	})

	return tags, wrapError(action, ref, err)
}

// Referrers lists the manifests whose subject is the given one, for example its signatures. For
// registries without the referrers API, the list is read from the tag that the OCI specification
// defines as a fallback.
func (c *Client) Referrers(
	ctx context.Context,
	ref Reference,
	subject ocispec.Descriptor,
) ([]ocispec.Descriptor, error) {
	const action = "list the signatures of"

	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	var all []ocispec.Descriptor

	err := c.lists(ref).Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		all = append(all, page...)
		if len(all) > maxReferrers {
			return newInvalidError(action, ref, "more than %d", maxReferrers)
		}

		return nil
	})

	return all, wrapError(action, ref, err)
}

// lists returns oras's client for lists, whose elements take far more memory than JSON: they are counted while oras
// reads them.
func (c *Client) lists(ref Reference) *remote.Repository {
	counting := *c.auth.Client
	counting.Transport = counted{counting.Transport}

	client := &auth.Client{
		Client: &counting, Header: c.auth.Header, Cache: c.auth.Cache, Credential: c.auth.Credential,
	}

	repository := c.Repository(ref)
	repository.Client = client
	repository.MaxMetadataBytes = maxAnswer

	return repository
}

// counted is a transport for lists.
type counted struct{ http.RoundTripper }

// RoundTrip sends a request. Reading too many values is an error of kind Invalid.
func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}

	counted := &countedList{json: limit.JSON{MaxBytes: maxManifest, MaxValues: maxAnswerValues, MaxDepth: limit.MaxDepth}}
	counted.ReadCloser = response.Body
	response.Body = counted

	return response, nil
}

// countedList is the body of a response with a list.
type countedList struct {
	io.ReadCloser
	json limit.JSON
}

// Read reads from the body.
func (l *countedList) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)

	if _, exceeded := l.json.Write(p[:n]); exceeded != nil {
		return 0, &transport.Error{Kind: transport.Invalid, Problem: "the registry sends a list that " + exceeded.Error()}
	}

	return n, err
}

// Resolve returns the descriptor of a manifest or index by its tag or digest, without reading it.
func (c *Client) Resolve(ctx context.Context, ref Reference) (ocispec.Descriptor, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	desc, err := c.Repository(ref).Resolve(ctx, ref.Identifier())

	return desc, wrapError("find", ref, err)
}

// Manifest reads a manifest or index by its tag or digest.
func (c *Client) Manifest(ctx context.Context, ref Reference) (ocispec.Descriptor, []byte, error) {
	const action = "pull"

	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	desc, body, err := c.Repository(ref).Manifests().FetchReference(ctx, ref.Identifier())
	if err != nil {
		return desc, nil, wrapError(action, ref, err)
	}
	defer body.Close()

	if desc.Size > maxManifest {
		return desc, nil, newInvalidError(action, ref, "a manifest of %d bytes; %d is the limit", desc.Size, maxManifest)
	}

	data, err := content.ReadAll(body, desc)
	if err == nil && limit.List(data, maxManifestValues) != nil {
		err = newInvalidError(action, ref, "a manifest with more than %d values", maxManifestValues)
	}

	return desc, data, wrapError(action, ref, err)
}

// Blob reads a blob into memory and verifies its digest. A blob larger than the limit in bytes is an
// error of kind Invalid.
func (c *Client) Blob(ctx context.Context, ref Reference, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	const action = "pull"
	if desc.Size > limit || desc.Size < 0 {
		return nil, newInvalidError(action, ref, "a layer of %d bytes; %d is the limit", desc.Size, limit)
	}

	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	body, err := c.Repository(ref).Blobs().Fetch(ctx, desc)
	if err != nil {
		return nil, wrapError(action, ref, err)
	}
	defer body.Close()

	data, err := content.ReadAll(body, desc)

	return data, wrapError(action, ref, err)
}

// OpenBlob returns a blob as a stream. The digest is verified when the stream ends: what was read
// must not be trusted before Read returns io.EOF.
func (c *Client) OpenBlob(ctx context.Context, ref Reference, desc ocispec.Descriptor) (io.ReadCloser, error) {
	body, err := c.Repository(ref).Blobs().Fetch(ctx, desc)
	if err != nil {
		return nil, wrapError("pull", ref, err)
	}

	return &verifiedBody{VerifyReader: content.NewVerifyReader(body, desc), body: body, ref: ref}, nil
}

// verifiedBody returns an error instead of io.EOF if the digest is wrong.
type verifiedBody struct {
	*content.VerifyReader
	body io.Closer
	ref  Reference
}

func (b *verifiedBody) Read(p []byte) (int, error) {
	n, err := b.VerifyReader.Read(p)
	if errors.Is(err, io.EOF) {
		if verifyErr := b.Verify(); verifyErr != nil {
			err = verifyErr
		}
	}

	if err != nil && !errors.Is(err, io.EOF) {
		err = wrapError("pull", b.ref, err)
	}

	return n, err
}

func (b *verifiedBody) Close() error { return b.body.Close() }
