package oci

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"

	"github.com/capstan-project/capstan/chartgen/transport"
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

func client(t *testing.T, o transport.Options) *Client {
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

// push pushes an artifact with one layer.
func push(t *testing.T, c *Client, ref Reference, text string) ocispec.Descriptor {
	t.Helper()
	g := NewWithT(t)

	repository := c.Repository(ref)
	layer, err := oras.PushBytes(t.Context(), repository, "text/plain", []byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	desc, err := oras.PackManifest(t.Context(), repository, oras.PackManifestVersion1_1, "application/vnd.test",
		oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(repository.Tag(t.Context(), desc, ref.Tag)).To(Succeed())

	return desc
}

func TestRegistryWithTLSAndPassword(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testRegistryWithTLSAndPassword(t, i) })
	}
}

func testRegistryWithTLSAndPassword(t *testing.T, i bed.Implementation) {
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
			options, err := transport.FromSecret(r.Address, data)
			g.Expect(err).NotTo(HaveOccurred())

			options.CA = r.CA
			c := client(t, options)
			desc := push(t, c, ref, "content")
			a, err := c.Artifact(t.Context(), ref)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.Descriptor.Digest).To(Equal(desc.Digest))
			g.Expect(c.Blob(t.Context(), ref, a.Manifest.Layers[0], 10)).To(Equal([]byte("content")))
			g.Expect(c.Tags(t.Context(), ref)).To(Equal([]string{"v1"}))
		})
	}

	file := filepath.Join(t.TempDir(), "config.json")
	helper := fmt.Appendf(nil, `{"credHelpers": {%q: "of-the-test"}}`, r.Address)
	NewWithT(t).Expect(os.WriteFile(file, helper, 0o600)).To(Succeed())

	helped, err := transport.DockerConfigFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for name, test := range map[string]struct {
		options transport.Options
		reason  transport.Kind
		message string
	}{
		"credential helper": {
			options: transport.Options{CA: r.CA, Credentials: helped}, reason: transport.Denied,
			message: "among its auths; the operator runs no credential helpers",
		},
		"no credentials": {options: transport.Options{CA: r.CA}, reason: transport.Denied, message: "asks for credentials"},
		"wrong credentials": {
			options: transport.Options{CA: r.CA, Credentials: bed.Login(r.Address, "me", "wr0ng-"+secret)},
			reason:  transport.Denied,
			message: "answers 401 Unauthorized",
		},
		"credentials of other host": {
			options: transport.Options{CA: r.CA, Credentials: bed.Login("example.com", "me", secret)},
			reason:  transport.Denied,
			message: "asks for credentials",
		},
		"untrusted authority": {
			options: transport.Options{Credentials: bed.Login(r.Address, "me", secret)},
			reason:  transport.Untrusted,
			message: "ca.crt",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := client(t, test.options).Artifact(t.Context(), ref)
			g.Expect(transport.Is(err, test.reason)).To(BeTrue(), "%v", err)
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
	c := client(t, transport.Options{})
	plain := parse(t, "http://"+r.Address+"/none:v1")
	_, err := c.Artifact(t.Context(), plain)
	NewWithT(t).Expect(transport.Is(err, transport.NotFound)).To(BeTrue(), "%v", err)
	_, err = c.Tags(t.Context(), plain)
	NewWithT(t).Expect(transport.Is(err, transport.NotFound)).To(BeTrue(), "%v", err)
	_, err = c.Artifact(t.Context(), parse(t, r.Address+"/none:v1"))
	NewWithT(t).Expect(transport.Is(err, transport.Untrusted)).To(BeTrue(), "%v", err)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("write http:// in front of it")))
	r.Stop()

	_, err = c.Artifact(t.Context(), plain)
	NewWithT(t).Expect(transport.Is(err, transport.Unavailable)).To(BeTrue(), "%v", err)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("can be reached from here")))
}

func TestReferrers(t *testing.T) {
	t.Run("API", func(t *testing.T) { testReferrers(t, bed.GoContainerRegistry, true) })
	t.Run("fallback tag", func(t *testing.T) { testReferrers(t, bed.Distribution, false) })
}

func testReferrers(t *testing.T, i bed.Implementation, api bool) {
	g := NewWithT(t)
	r := runRegistry(t, bed.RegistryOptions{Implementation: i})
	c := client(t, transport.Options{})
	ref := parse(t, "http://"+r.Address+"/a:v1")
	subject := push(t, c, ref, "content")
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
		o, err := transport.FromSecret("example.com", data)
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
	options, err := transport.FromSecret("registry.example", map[string][]byte{"proxy": []byte(proxy.URL)})
	g.Expect(err).NotTo(HaveOccurred())
	push(t, client(t, options), parse(t, "http://registry.example/test/artifact:v1"), "content")
	g.Expect(proxied.Load()).To(BeNumerically(">", 0))
}
