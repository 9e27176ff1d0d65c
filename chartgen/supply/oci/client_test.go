package oci

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"

	"github.com/capstan-project/capstan/test/bed"
)

const secret = "s3cr3t-of-the-registry"

func runRegistry(t *testing.T, o bed.RegistryOptions) *bed.Registry {
	t.Helper()
	o.Dir = t.TempDir()
	r, err := bed.RunRegistry(t.Context(), o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Stop)

	return r
}

func client(t *testing.T, o Options) *Client {
	t.Helper()

	c, err := NewClient(o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return c
}

func parse(t *testing.T, s string) Reference {
	t.Helper()

	ref, err := Parse(s)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return ref
}

func push(t *testing.T, c *Client, ref Reference, text string) (ocispec.Descriptor, error) {
	t.Helper()

	artifact, err := Pack(
		"application/vnd.test",
		NewLayer(ocispec.MediaTypeEmptyJSON, []byte("{}")),
		[]Layer{NewLayer("text/plain", []byte(text))},
		nil,
	)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return c.Push(t.Context(), ref, artifact)
}

func TestParse(t *testing.T) {
	d := "sha256:" + strings.Repeat("a", 64)
	for in, want := range map[string]string{
		"oci://example.com/a/b":            "oci://example.com/a/b",
		"example.com/a/b:v1":               "oci://example.com/a/b:v1",
		"http://localhost:5000/a:v1":       "http://localhost:5000/a:v1",
		"example.com:5000/a:v1@" + d:       "oci://example.com:5000/a:v1@" + d,
		"oci://example.com/a@" + d:         "oci://example.com/a@" + d,
		"oci://example.com/a/":             "oci://example.com/a",
		"example.com":                      "",
		"https://example.com/a":            "",
		"oci://example.com/A":              "",
		"oci://example.com/a:v1+x":         "",
		"oci://example.com/a@sha256:12":    "",
		"oci://user:pw@example.com/a":      "",
		"oci://example.com/../etc/passwd":  "",
		"oci://example.com/a b":            "",
		"oci://example.com/a?x=y":          "",
		"oci://exam\nple.com/a":            "",
		"oci://example.com/a:v1:v2":        "",
		"oci://example.com/a#frag":         "",
		"oci://[::1]:5000/a:v1":            "oci://[::1]:5000/a:v1",
		"oci://example.com/a:1.0.0_build5": "oci://example.com/a:1.0.0_build5",
	} {
		t.Run(in, func(t *testing.T) {
			g := NewWithT(t)

			ref, err := Parse(in)
			if want == "" {
				g.Expect(err).To(HaveOccurred())
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ref.String()).To(Equal(want))
			g.Expect(Parse(ref.String())).To(Equal(ref))
		})
	}
}

func TestParseImage(t *testing.T) {
	for in, want := range map[string]string{
		"nginx":                        "docker.io/library/nginx:latest",
		"org/once:v1":                  "docker.io/org/once:v1",
		"registry.k8s.io/a/b:v1":       "registry.k8s.io/a/b:v1",
		"localhost:5000/a@" + anyImage: "localhost:5000/a@" + anyImage,
	} {
		ref, err := ParseImage(in)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(ref.Name()).To(Equal(want))
	}

	_, err := ParseImage("a//b")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("not an image reference")))
}

const anyImage = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func TestRegistryWithTLSAndPassword(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testRegistryWithTLSAndPassword(t, i) })
	}
}

func testRegistryWithTLSAndPassword(t *testing.T, i bed.Implementation) {
	g := NewWithT(t)
	r := runRegistry(t, bed.RegistryOptions{Implementation: i, TLS: true, User: "me", Password: secret})
	ref := parse(t, r.Address+"/test/artifact:v1")

	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, r.Address, base64.StdEncoding.EncodeToString([]byte("me:"+secret)))
	for name, data := range map[string]map[string][]byte{
		"username and password":       {"username": []byte("me"), "password": []byte(secret)},
		"cluster-api-operator's keys": {"OCI_USERNAME": []byte("me"), "OCI_PASSWORD": []byte(secret)},
		"docker configuration":        {".dockerconfigjson": []byte(config)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options, err := OptionsFromSecret(r.Address, data)
			g.Expect(err).NotTo(HaveOccurred())

			options.CA = r.CA
			c := client(t, options)
			desc, err := push(t, c, ref, "content")
			g.Expect(err).NotTo(HaveOccurred())
			a, err := c.Artifact(t.Context(), ref)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.Descriptor.Digest).To(Equal(desc.Digest))
			g.Expect(c.Blob(t.Context(), ref, a.Manifest.Layers[0], 10)).To(Equal([]byte("content")))
			g.Expect(c.Tags(t.Context(), ref)).To(Equal([]string{"v1"}))
		})
	}

	_, err := push(
		t,
		client(t, Options{CA: r.CA, Credentials: StaticCredentials(r.Address, "me", secret)}),
		ref,
		"other content",
	)
	g.Expect(IsReason(err, Conflict)).To(BeTrue(), "%v", err)

	for name, test := range map[string]struct {
		options Options
		reason  Reason
		message string
	}{
		"no credentials": {options: Options{CA: r.CA}, reason: Denied, message: "asks for credentials"},
		"wrong credentials": {
			options: Options{CA: r.CA, Credentials: StaticCredentials(r.Address, "me", "wr0ng-"+secret)},
			reason:  Denied,
			message: "refuses the credentials",
		},
		"credentials of other host": {
			options: Options{CA: r.CA, Credentials: StaticCredentials("example.com", "me", secret)},
			reason:  Denied,
			message: "asks for credentials",
		},
		"untrusted authority": {
			options: Options{Credentials: StaticCredentials(r.Address, "me", secret)},
			reason:  Untrusted,
			message: "ca.crt",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := client(t, test.options).Artifact(t.Context(), ref)
			g.Expect(IsReason(err, test.reason)).To(BeTrue(), "%v", err)
			g.Expect(err).
				To(MatchError(And(ContainSubstring(test.message), ContainSubstring(ref.String()), Not(ContainSubstring(secret)))))
		})
	}
}

func TestMissingRepository(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testMissingRepository(t, i) })
	}
}

func testMissingRepository(t *testing.T, i bed.Implementation) {
	r := runRegistry(t, bed.RegistryOptions{Implementation: i})
	c := client(t, Options{})
	plain := parse(t, "http://"+r.Address+"/none:v1")
	_, err := c.Artifact(t.Context(), plain)
	NewWithT(t).Expect(IsReason(err, NotFound)).To(BeTrue(), "%v", err)
	_, err = c.Tags(t.Context(), plain)
	NewWithT(t).Expect(IsReason(err, NotFound)).To(BeTrue(), "%v", err)
	_, err = c.Artifact(t.Context(), parse(t, r.Address+"/none:v1"))
	NewWithT(t).Expect(IsReason(err, Untrusted)).To(BeTrue(), "%v", err)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("write http:// in front of it")))
	r.Stop()

	_, err = c.Artifact(t.Context(), plain)
	NewWithT(t).Expect(IsReason(err, Unavailable)).To(BeTrue(), "%v", err)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("can be reached from here")))
}

func TestReferrers(t *testing.T) {
	t.Run("API", func(t *testing.T) { testReferrers(t, bed.GoContainerRegistry, true) })
	t.Run("fallback tag", func(t *testing.T) { testReferrers(t, bed.Distribution, false) })
}

func testReferrers(t *testing.T, i bed.Implementation, api bool) {
	g := NewWithT(t)
	r := runRegistry(t, bed.RegistryOptions{Implementation: i})
	c := client(t, Options{})
	ref := parse(t, "http://"+r.Address+"/a:v1")
	subject, err := push(t, c, ref, "content")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Referrers(t.Context(), ref, subject)).To(BeEmpty())
	repository := c.Repository(ref)
	g.Expect(repository.SetReferrersCapability(api)).To(Succeed())

	var all []any

	for _, kind := range []string{"application/vnd.test.signature", "application/vnd.test.sbom"} {
		desc, err := oras.PackManifest(
			t.Context(),
			repository,
			oras.PackManifestVersion1_1,
			kind,
			oras.PackManifestOptions{Subject: &subject},
		)
		g.Expect(err).NotTo(HaveOccurred())

		all = append(all, HaveField("Digest", desc.Digest))
	}

	g.Expect(c.Referrers(t.Context(), ref, subject)).To(ConsistOf(all...))
}

func TestErrorsContainNoSecrets(t *testing.T) {
	for _, data := range []map[string][]byte{
		{".dockerconfigjson": []byte(`{"auths": ` + secret)},
		{"tls.crt": []byte(secret), "tls.key": []byte(secret)},
		{"ca.crt": []byte(secret)},
		{"proxy": []byte("http://me:" + secret + "@")},
	} {
		o, err := OptionsFromSecret("example.com", data)
		if err == nil {
			_, err = NewClient(o)
		}

		NewWithT(t).Expect(err).To(MatchError(Not(ContainSubstring(secret))))
	}
}

func TestProxy(t *testing.T) {
	g := NewWithT(t)
	r := runRegistry(t, bed.RegistryOptions{})

	var proxied atomic.Int32

	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		proxied.Add(1)
		p.SetURL(&url.URL{Scheme: "http", Host: r.Address})
		p.Out.Host = p.In.Host
	}})
	t.Cleanup(proxy.Close)
	options, err := OptionsFromSecret("registry.example", map[string][]byte{"proxy": []byte(proxy.URL)})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = push(t, client(t, options), parse(t, "http://registry.example/test/artifact:v1"), "content")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(proxied.Load()).To(BeNumerically(">", 0))
}

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

	cutAfter := func(times int32) func(http.ResponseWriter, *http.Request, []byte) {
		var served atomic.Int32

		return func(w http.ResponseWriter, _ *http.Request, body []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))

			if served.Add(1) <= times {
				body = body[:len(body)/2]
			}

			_, _ = w.Write(body)
		}
	}
	for name, test := range map[string]struct {
		handle  func(http.ResponseWriter, *http.Request, []byte)
		limit   int64
		reason  Reason
		message string
	}{
		"connection cut twice":  {handle: cutAfter(2)},
		"connection always cut": {handle: cutAfter(100), reason: Unavailable, message: "cut repeatedly"},
		"other content": {handle: func(w http.ResponseWriter, _ *http.Request, body []byte) {
			_, _ = w.Write([]byte(strings.ToUpper(string(body))))
		}, reason: Invalid, message: "does not match its digest"},
		"endless body": {handle: func(w http.ResponseWriter, r *http.Request, body []byte) {
			for r.Context().Err() == nil {
				if _, err := w.Write(body); err != nil {
					return
				}
			}
		}, reason: Invalid, message: "does not match its digest and size"},
		"stalled body": {handle: func(w http.ResponseWriter, r *http.Request, body []byte) {
			_, _ = w.Write(body[:10])
			_ = http.NewResponseController(w).Flush()

			<-r.Context().Done()
		}, reason: Unavailable, message: "stalled"},
		"layer above the limit": {handle: cutAfter(0), limit: 100, reason: Invalid, message: "100 is the limit"},
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
		}, reason: Invalid, message: "digest and size"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			server := httptest.NewServer(
				&faultyRegistry{layer: layer, announced: content.NewDescriptorFromBytes("text/plain", layer), handle: test.handle},
			)
			defer server.Close()

			c := client(t, Options{StallTimeout: 300 * time.Millisecond})
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
			g.Expect(IsReason(err, test.reason)).To(BeTrue(), "%v", err)
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
	c := client(t, Options{Credentials: StaticCredentials(ref.Registry, "me", secret)})
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
	body, err := client(t, Options{}).OpenBlob(
		t.Context(),
		ref,
		content.NewDescriptorFromBytes("text/plain", []byte("good")),
	)
	g.Expect(err).NotTo(HaveOccurred())

	defer body.Close()

	_, err = io.ReadAll(body)
	g.Expect(IsReason(err, Invalid)).To(BeTrue(), "%v", err)
}

func TestResolveIsCanceled(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := client(t, Options{}).Resolve(ctx, parse(t, server.URL+"/a:v1"))
	NewWithT(t).Expect(errors.Is(err, context.Canceled)).To(BeTrue())
}
