package oci

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/capstan-project/capstan/chartgen/supply/transport"
)

// Bounds of what is taken from a registry.
const (
	// maxManifest bounds a manifest or an index; registries take no larger ones.
	maxManifest = 4 << 20
	// maxTags and maxPages bound a list of tags, maxPages one of referrers too.
	maxTags, maxPages = 10000, 200
	// attempts is how often a body that is cut is asked for in all; requests that fail before their
	// body have retries of their own.
	maxAttempts = 3
)

// Options of a client. The zero value is a client for public registries.
type Options struct {
	Credentials Credentials
	// CA are PEM certificates of authorities that are trusted besides the system's.
	CA []byte
	// Certificate and Key are the client's own, in PEM, if the registry asks for one.
	Certificate, Key []byte
	// Proxy is the URL of the proxy to go through, instead of the environment's.
	Proxy string
	// StallTimeout is how long nothing may arrive or leave; 0 means one minute.
	StallTimeout time.Duration
}

// Client is a client of any number of registries. It is safe for concurrent use and holds nothing
// that needs to be closed.
type Client struct {
	auth *auth.Client
}

// NewClient makes a client.
func NewClient(o Options) (*Client, error) {
	transport, err := o.roundTripper()
	if err != nil {
		return nil, err
	}

	c := &auth.Client{
		Client:     &http.Client{Transport: retry.NewTransport(transport)},
		Header:     http.Header{"User-Agent": {"capstan"}},
		Cache:      auth.NewCache(),
		Credential: o.Credentials,
	}

	return &Client{auth: c}, nil
}

// transport is a connection without endless silence.
func (o Options) roundTripper() (http.RoundTripper, error) {
	t, err := transport.New(transport.Options{CA: o.CA, Certificate: o.Certificate, Key: o.Key, Proxy: o.Proxy})
	if err != nil {
		return nil, err
	}

	t.IdleConnTimeout = 30 * time.Second // clients come and go with the Secrets they are made from
	t.MaxIdleConnsPerHost = 16

	return &stallGuard{next: t, timeout: cmp.Or(o.StallTimeout, time.Minute)}, nil
}

// Repository is the reference's repository, for what only its own client can do. Tag and digest do
// not matter.
func (c *Client) Repository(ref Reference) *remote.Repository {
	return &remote.Repository{
		Client:               c.auth,
		Reference:            registry.Reference{Registry: ref.Registry, Repository: ref.Repository},
		PlainHTTP:            ref.PlainHTTP,
		MaxMetadataBytes:     maxManifest,
		TagListMaxPages:      maxPages,
		ReferrerListMaxPages: maxPages,
	}
}

// Tags lists the tags of a repository, in the registry's order.
func (c *Client) Tags(ctx context.Context, ref Reference) ([]string, error) {
	const action = "list the tags of"

	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()

	var tags []string

	err := c.Repository(ref).Tags(ctx, "", func(page []string) error {
		if tags = append(tags, page...); len(tags) > maxTags {
			return newInvalidError(action, ref, "more than %d tags", maxTags)
		}

		return nil
	})

	return tags, wrapError(action, ref, err)
}

// Resolve finds the descriptor of a manifest by its tag or digest, without reading it.
func (c *Client) Resolve(ctx context.Context, ref Reference) (ocispec.Descriptor, error) {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()

	desc, err := c.Repository(ref).Resolve(ctx, ref.Identifier())

	return desc, wrapError("find", ref, err)
}

// Manifest reads a manifest or an index by its tag or digest.
func (c *Client) Manifest(ctx context.Context, ref Reference) (ocispec.Descriptor, []byte, error) {
	const action = "pull"

	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()

	var (
		desc ocispec.Descriptor
		data []byte
	)

	err := retryBody(ctx, func() error {
		found, body, err := c.Repository(ref).Manifests().FetchReference(ctx, ref.Identifier())
		if err != nil {
			return err
		}
		defer body.Close()

		if found.Size > maxManifest {
			return newInvalidError(action, ref, "a manifest of %d bytes; %d is what registries take", found.Size, maxManifest)
		}

		desc = found
		data, err = content.ReadAll(body, found)

		return err
	})

	return desc, data, wrapError(action, ref, err)
}

// Blob reads a blob of a repository into memory, if it is not larger than the limit.
func (c *Client) Blob(ctx context.Context, ref Reference, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	const action = "pull"
	if desc.Size > limit || desc.Size < 0 {
		return nil, newInvalidError(action, ref, "a layer of %d bytes; %d is the limit", desc.Size, limit)
	}

	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()

	var data []byte

	err := retryBody(ctx, func() error {
		body, err := c.Repository(ref).Blobs().Fetch(ctx, desc)
		if err != nil {
			return err
		}
		defer body.Close()

		data, err = content.ReadAll(body, desc)

		return err
	})

	return data, wrapError(action, ref, err)
}

// Open reads a blob as a stream. The digest is verified at the end: whoever uses what was read
// before owes a read until io.EOF.
func (c *Client) OpenBlob(ctx context.Context, ref Reference, desc ocispec.Descriptor) (io.ReadCloser, error) {
	body, err := c.Repository(ref).Blobs().Fetch(ctx, desc)
	if err != nil {
		return nil, wrapError("pull", ref, err)
	}

	return &verifiedBody{VerifyReader: content.NewVerifyReader(body, desc), body: body, ref: ref}, nil
}

// verifiedBody ends with an error in place of io.EOF when the digest is wrong.
type verifiedBody struct {
	*content.VerifyReader
	body io.Closer
	ref  Reference
}

func (b *verifiedBody) Read(p []byte) (int, error) {
	n, err := b.VerifyReader.Read(p)
	if errors.Is(err, io.EOF) {
		if wrong := b.Verify(); wrong != nil {
			err = wrong
		}
	}

	if err != nil && !errors.Is(err, io.EOF) {
		err = wrapError("pull", b.ref, err)
	}

	return n, err
}

func (b *verifiedBody) Close() error { return b.body.Close() }

// bounded gives what is small two minutes.
func withRequestTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 2*time.Minute)
}

// again repeats what reads a body, as long as the connection was what failed.
func retryBody(ctx context.Context, read func() error) error {
	for attempt := 1; ; attempt++ {
		err := read()
		if err == nil || attempt == maxAttempts || ctx.Err() != nil || !isInterrupted(err) {
			return err
		}
	}
}

// cut reports whether a body ended before its time.
func isInterrupted(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errStalled)
}
