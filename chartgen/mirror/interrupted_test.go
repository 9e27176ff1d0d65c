package mirror

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
)

// flakyProxy cuts downloads of blobs, or their uploads, after the first 10 KiB.
type flakyProxy struct {
	*httputil.ReverseProxy
	uploads bool
	cut     atomic.Bool
}

func (f *flakyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	upload := r.Method == http.MethodPut || r.Method == http.MethodPatch
	affected := upload && f.uploads || r.Method == http.MethodGet && !f.uploads

	if f.cut.Load() && affected && strings.Contains(r.URL.Path, "/blobs/") {
		const after = 10 << 10

		w = &cutWriter{ResponseWriter: w, left: after}
		r.Body = &cutReader{ReadCloser: r.Body, left: after}
	}

	f.ReverseProxy.ServeHTTP(w, r)
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	c.left -= len(p)
	if c.left < 0 {
		return 0, errors.New("cut")
	}

	return c.ResponseWriter.Write(p)
}

type cutReader struct {
	io.ReadCloser
	left int
}

func (c *cutReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)

	c.left -= n
	if c.left < 0 {
		return 0, errors.New("cut")
	}

	return n, err
}

// startProxy starts a flakyProxy of a registry and returns its address.
func startProxy(t *testing.T, registry string, uploads bool) (*flakyProxy, string) {
	t.Helper()

	proxy := &flakyProxy{
		ReverseProxy: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: registry}),
		uploads:      uploads,
	}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)

	return proxy, server.URL
}

// TestCopyContinues: a copy whose transfers are cut names what failed, and the next one copies only what is missing.
func TestCopyContinues(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i)+" downloads", func(t *testing.T) { testInterruptedDownload(t, i) })
		t.Run(string(i)+" uploads", func(t *testing.T) { testInterruptedUpload(t, i) })
	}
}

func testInterruptedDownload(t *testing.T, i bed.Implementation) {
	g := NewWithT(t)
	c := newClient(t, transport.Options{})
	server := runRegistry(t, bed.RegistryOptions{Implementation: i})
	publishImages(t, c, server.Address)
	proxy, address := startProxy(t, server.Address, false)
	refs := []oci.Reference{
		repository(t, address).Join("cluster-api/controller").WithTag("v1.0.0"),
		repository(t, address).Join("cluster-api/bootstrap").WithTag("v1.0.0"),
	}
	all := items(t, c, refs)
	file := filepath.Join(t.TempDir(), "mirror.tar")

	proxy.cut.Store(true)

	var first, second tally

	a, err := CreateArchive(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Copy(t.Context(), all, a, first.options(2))).
		To(MatchError(And(ContainSubstring("controller"), ContainSubstring("bootstrap"))), "every large layer is cut")
	g.Expect(file).NotTo(BeAnExistingFile())

	proxy.cut.Store(false)

	a, err = CreateArchive(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Copy(t.Context(), all, a, second.options(2))).To(Succeed())
	g.Expect(a.Close()).To(Succeed())
	g.Expect(second.bytes.Load()).To(BeNumerically("<", all[0].Size+all[1].Size+all[2].Size), "what was complete is kept")

	_, err = OpenArchive(t.Context(), file)
	g.Expect(err).NotTo(HaveOccurred())
}

func testInterruptedUpload(t *testing.T, i bed.Implementation) {
	g := NewWithT(t)
	c := newClient(t, transport.Options{})
	refs := publishImages(t, c, runRegistry(t, bed.RegistryOptions{}).Address)
	server := runRegistry(t, bed.RegistryOptions{Implementation: i})
	proxy, address := startProxy(t, server.Address, true)
	all := items(t, c, refs)
	target := &Registry{Client: c, Base: repository(t, address)}
	resolve := func(ref oci.Reference) error {
		_, err := c.Resolve(t.Context(), target.Base.Join(ref.Repository).WithTag("v1.0.0"))
		return err
	}

	proxy.cut.Store(true)
	g.Expect(Copy(t.Context(), all, target, Options{Parallel: 2})).
		To(MatchError(And(ContainSubstring("controller"), ContainSubstring("bootstrap"))), "every large layer is cut")

	for _, ref := range refs {
		g.Expect(transport.Is(resolve(ref), transport.NotFound)).To(BeTrue(), "an incomplete image gets no tag")
	}

	proxy.cut.Store(false)

	var second tally

	g.Expect(Copy(t.Context(), all, target, second.options(2))).To(Succeed())
	g.Expect(second.bytes.Load()).To(BeNumerically("<", all[0].Size+all[1].Size+all[2].Size), "what was complete is kept")

	for _, ref := range refs {
		g.Expect(resolve(ref)).To(Succeed())
	}
}
