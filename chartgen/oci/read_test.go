package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
)

// faultyRegistry serves one manifest with one layer; handle decides how it serves the layer.
type faultyRegistry struct {
	layer     []byte
	announced ocispec.Descriptor
	handle    func(w http.ResponseWriter, r *http.Request, body []byte)
	requests  atomic.Int32
}

func (m *faultyRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.requests.Add(1)

	manifest := fmt.Appendf(
		nil,
		`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":2},"layers":[{"mediaType":"text/`+
			`plain","digest":%q,"size":%d}]}`,
		ocispec.MediaTypeImageManifest,
		ocispec.MediaTypeEmptyJSON,
		ocispec.DescriptorEmptyJSON.Digest,
		m.announced.Digest,
		m.announced.Size,
	)
	if strings.Contains(r.URL.Path, "/blobs/") {
		m.handle(w, r, m.layer)
		return
	}

	w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
	w.Header().Set("Content-Length", strconv.Itoa(len(manifest)))
	_, _ = w.Write(manifest)
}

func TestBlobFromFaultyRegistry(t *testing.T) {
	layer := []byte(strings.Repeat("content ", 1000))
	serve := func(w http.ResponseWriter, _ *http.Request, body []byte) { _, _ = w.Write(body) }

	for name, test := range map[string]struct {
		handle  func(http.ResponseWriter, *http.Request, []byte)
		limit   int64
		reason  transport.Kind
		message string
	}{
		"connection cut": {handle: func(w http.ResponseWriter, _ *http.Request, body []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body[:len(body)/2])
		}, reason: transport.Unavailable, message: "the connection was cut"},
		"other content": {handle: func(w http.ResponseWriter, _ *http.Request, body []byte) {
			_, _ = w.Write([]byte(strings.ToUpper(string(body))))
		}, reason: transport.Invalid, message: "does not match its digest"},
		"endless body": {handle: func(w http.ResponseWriter, r *http.Request, body []byte) {
			for r.Context().Err() == nil {
				if _, err := w.Write(body); err != nil {
					return
				}
			}
		}, reason: transport.Invalid, message: "does not match its digest and size"},
		"layer above the limit": {handle: serve, limit: 100, reason: transport.Invalid, message: "100 is the limit"},
		"status 500 once": {handle: func() func(http.ResponseWriter, *http.Request, []byte) {
			var served atomic.Int32

			return func(w http.ResponseWriter, _ *http.Request, body []byte) {
				if served.Add(1) == 1 {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}

				_, _ = w.Write(body)
			}
		}()},
		"web page": {handle: func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			_, _ = w.Write([]byte("<html>Please log in</html>"))
		}, reason: transport.Invalid, message: "digest and size"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			server := httptest.NewServer(
				&faultyRegistry{layer: layer, announced: content.NewDescriptorFromBytes("text/plain", layer), handle: test.handle},
			)
			defer server.Close()

			c := client(t, transport.Options{})
			ref := parse(t, server.URL+"/a:v1")
			a, err := c.Artifact(t.Context(), ref)
			g.Expect(err).NotTo(HaveOccurred())

			limit := max(test.limit, 0)
			if limit == 0 {
				limit = 1 << 20
			}

			data, err := c.Blob(t.Context(), ref, a.Manifest.Layers[0], limit)
			if test.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(data).To(Equal(layer))

				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(test.message)))
			g.Expect(transport.Is(err, test.reason)).To(BeTrue(), "%v", err)
		})
	}
}

func TestCredentialsAreNotRedirected(t *testing.T) {
	g := NewWithT(t)
	layer := []byte("content")

	var sent, signed atomic.Value

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Store(r.Header.Get("Authorization"))
		signed.Store(r.URL.RawQuery)

		if r.URL.Query().Has("gone") {
			panic(http.ErrAbortHandler)
		}

		_, _ = w.Write(layer)
	}))
	defer other.Close()

	query := "signature=" + secret

	server := httptest.NewServer(
		&faultyRegistry{
			layer:     layer,
			announced: content.NewDescriptorFromBytes("text/plain", layer),
			handle: func(w http.ResponseWriter, r *http.Request, _ []byte) {
				if _, password, _ := r.BasicAuth(); password != secret {
					w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
					w.WriteHeader(http.StatusUnauthorized)

					return
				}

				http.Redirect(w, r, other.URL+"/storage?"+query, http.StatusTemporaryRedirect)
			},
		},
	)
	defer server.Close()

	ref := parse(t, server.URL+"/a:v1")
	c := client(t, transport.Options{Credentials: bed.Login(ref.Registry, "me", secret)})
	a, err := c.Artifact(t.Context(), ref)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Blob(t.Context(), ref, a.Manifest.Layers[0], 100)).To(Equal(layer))
	g.Expect(sent.Load()).To(BeEmpty())
	g.Expect(signed.Load()).To(ContainSubstring(secret))

	query += "&gone"
	_, err = c.Blob(t.Context(), ref, a.Manifest.Layers[0], 100)
	g.Expect(err).To(MatchError(Not(ContainSubstring(secret))))
}

func TestOpenBlobVerifiesDigest(t *testing.T) {
	g := NewWithT(t)

	server := httptest.NewServer(
		&faultyRegistry{layer: []byte("evil"), announced: content.NewDescriptorFromBytes("text/plain", []byte("good")),
			handle: func(w http.ResponseWriter, _ *http.Request, body []byte) { _, _ = w.Write(body) }},
	)
	defer server.Close()

	ref := parse(t, server.URL+"/a:v1")
	body, err := client(t, transport.Options{}).OpenBlob(
		t.Context(),
		ref,
		content.NewDescriptorFromBytes("text/plain", []byte("good")),
	)
	g.Expect(err).NotTo(HaveOccurred())

	defer body.Close()

	_, err = io.ReadAll(body)
	g.Expect(transport.Is(err, transport.Invalid)).To(BeTrue(), "%v", err)
}

func TestResolveIsCanceled(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := client(t, transport.Options{}).Resolve(ctx, parse(t, server.URL+"/a:v1"))
	NewWithT(t).Expect(errors.Is(err, context.Canceled)).To(BeTrue())
}

// TestAnswersAreCounted: lists and manifests of empty elements, each of which takes a hundred times as much in memory,
// are refused before they are decoded.
func TestAnswersAreCounted(t *testing.T) {
	tags := func(ctx context.Context, c *Client, ref Reference) error {
		_, err := c.Tags(ctx, ref)
		return err
	}
	referrers := func(ctx context.Context, c *Client, ref Reference) error {
		_, err := c.Referrers(ctx, ref, ocispec.DescriptorEmptyJSON)
		return err
	}
	manifest := func(ctx context.Context, c *Client, ref Reference) error {
		_, err := c.Artifact(ctx, ref)
		return err
	}

	for name, c := range map[string]struct {
		read        func(context.Context, *Client, Reference) error
		path, begin string
		element     string
		mediaType   string
		problem     string
	}{
		"tags": {
			read: tags, path: "/tags/list", begin: `{"tags":[`, element: `""`, mediaType: "application/json",
			problem: "the registry sends a list that has more than 20000 values",
		},
		"referrers": {
			read: referrers, path: "/referrers/", begin: `{"manifests":[`, element: `{}`,
			mediaType: ocispec.MediaTypeImageIndex,
			problem:   "the registry sends a list that has more than 20000 values",
		},
		"referrers by a tag": {
			read: referrers, path: "/manifests/", begin: `{"manifests":[`, element: `{}`,
			mediaType: ocispec.MediaTypeImageIndex,
			problem:   "the registry sends a list that has more than 20000 values",
		},
		"a manifest": {
			read: manifest, path: "/manifests/", begin: `{"layers":[`, element: `{}`,
			mediaType: ocispec.MediaTypeImageManifest,
			problem:   "a manifest with more than 10000 values",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := c.begin + strings.Repeat(c.element+",", 30000) + c.element + `]}`
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, c.path) {
					http.NotFound(w, r)
					return
				}

				w.Header().Set("Content-Type", c.mediaType)
				w.Header().Set("Content-Length", strconv.Itoa(len(text)))
				_, _ = w.Write([]byte(text))
			}))
			t.Cleanup(server.Close)

			err := c.read(t.Context(), client(t, transport.Options{}), parse(t, server.URL+"/a:v1"))
			g.Expect(transport.Is(err, transport.Invalid)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(c.problem)))
		})
	}
}

// TestEndlessLists: of a list without an end, 200 pages are read.
func TestEndlessLists(t *testing.T) {
	for path, read := range map[string]func(*Client, Reference) error{
		"/tags/list": func(c *Client, ref Reference) error {
			_, err := c.Tags(t.Context(), ref)
			return err
		},
		"/referrers/": func(c *Client, ref Reference) error {
			_, err := c.Referrers(t.Context(), ref, ocispec.DescriptorEmptyJSON)
			return err
		},
	} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)

			var pages int

			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, path) {
					http.NotFound(w, r)
					return
				}

				pages++

				w.Header().Set("Link", fmt.Sprintf(`<%s?last=%d>; rel="next"`, r.URL.Path, pages))
				w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
				_, _ = io.WriteString(w, `{"tags":[],"manifests":[]}`)
			}))
			t.Cleanup(server.Close)

			err := read(client(t, transport.Options{}), parse(t, server.URL+"/a:v1"))
			g.Expect(err).To(MatchError(ContainSubstring("200 pages")))
			g.Expect(pages).To(Equal(200))
		})
	}
}
