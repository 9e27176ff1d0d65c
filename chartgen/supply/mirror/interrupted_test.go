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
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/test/bed"
)

// flakyProxy cuts every nth download of a blob, or every nth upload, after the first 10 KiB.
type flakyProxy struct {
	*httputil.ReverseProxy
	uploads     bool
	every, seen atomic.Int32
}

func (f *flakyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	upload := r.Method == http.MethodPut || r.Method == http.MethodPatch

	every := f.every.Load()
	if strings.Contains(r.URL.Path, "/blobs/") && (upload && f.uploads || r.Method == http.MethodGet && !f.uploads) &&
		every > 0 &&
		f.seen.Add(1)%every == 0 {
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

func TestCopyContinues(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i)+" downloads", func(t *testing.T) { testInterruptedDownload(t, i) })
		t.Run(string(i)+" uploads", func(t *testing.T) { testInterruptedUpload(t, i) })
	}
}

func testInterruptedDownload(t *testing.T, i bed.Implementation) {
	g := NewWithT(t)
	c := newClient(t, oci.Options{StallTimeout: 10 * time.Second})
	server := runRegistry(t, bed.RegistryOptions{Implementation: i})
	publishImages(t, c, server.Address)
	proxy, address := startProxy(t, server.Address, false)
	refs := []oci.Reference{
		repository(t, address).Join("cluster-api/controller").WithTag("v1.0.0"),
		repository(t, address).Join("cluster-api/bootstrap").WithTag("v1.0.0"),
	}
	all := items(t, c, refs)
	file := filepath.Join(t.TempDir(), "mirror.tar")

	proxy.every.Store(1)

	a, err := CreateArchive(file)
	g.Expect(err).NotTo(HaveOccurred())
	err = Copy(t.Context(), all, a, Options{Parallel: 2, Observer: &tally{}})
	g.Expect(err).
		To(MatchError(And(ContainSubstring("controller"), ContainSubstring("bootstrap"))), "every large layer is cut")
	g.Expect(file).NotTo(BeAnExistingFile())

	proxy.every.Store(3)

	a, err = CreateArchive(file)
	g.Expect(err).NotTo(HaveOccurred())

	counts := &tally{}
	g.Expect(Copy(t.Context(), all, a, Options{Parallel: 2, Observer: counts})).
		To(Succeed(), "every third download is cut and retried")
	g.Expect(a.Close(t.Context())).To(Succeed())
	g.Expect(counts.skippedBytes).To(BeNumerically(">", 0), "small blobs of the first attempt were kept")

	_, err = OpenArchive(t.Context(), file)
	g.Expect(err).NotTo(HaveOccurred())
}

func testInterruptedUpload(t *testing.T, i bed.Implementation) {
	g := NewWithT(t)
	c := newClient(t, oci.Options{StallTimeout: 10 * time.Second})
	refs := publishImages(t, c, runRegistry(t, bed.RegistryOptions{}).Address)
	server := runRegistry(t, bed.RegistryOptions{Implementation: i})
	proxy, address := startProxy(t, server.Address, true)
	all := items(t, c, refs)
	target := &Registry{Client: c, Base: repository(t, address)}
	resolve := func(ref oci.Reference) error {
		_, err := c.Resolve(t.Context(), target.Base.Join(ref.Repository).WithTag("v1.0.0"))
		return err
	}

	proxy.every.Store(1)

	err := Copy(t.Context(), all, target, Options{Parallel: 2, Observer: &tally{}})
	g.Expect(err).
		To(MatchError(And(ContainSubstring("controller"), ContainSubstring("bootstrap"))), "every large layer is cut")

	for _, ref := range refs {
		g.Expect(oci.IsReason(resolve(ref), oci.NotFound)).To(BeTrue(), "an incomplete image gets no tag")
	}

	proxy.every.Store(3)

	counts := &tally{}
	g.Expect(Copy(t.Context(), all, target, Options{Parallel: 2, Observer: counts})).
		To(Succeed(), "every third upload is cut and retried")
	g.Expect(counts.skippedBytes).To(BeNumerically(">", 0), "small blobs of the first attempt were kept")

	for _, ref := range refs {
		g.Expect(resolve(ref)).To(Succeed())
	}
}
