package mirror

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/image"
)

// tally is an Observer that counts bytes and items.
type tally struct {
	mu                        sync.Mutex
	copiedBytes, skippedBytes int64
	finished, copied          int
}

func (c *tally) Copied(_ *Item, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.copiedBytes += n
}

func (c *tally) Skipped(_ *Item, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.skippedBytes += n
}

func (c *tally) Finished(_ *Item, result Result) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.finished++
	if !result.UpToDate {
		c.copied++
	}
}

func newClient(t *testing.T, o oci.Options) *oci.Client {
	t.Helper()

	c, err := oci.NewClient(o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return c
}

func runRegistry(t *testing.T, o bed.RegistryOptions) *bed.Registry {
	t.Helper()
	o.Dir = t.TempDir()
	r, err := bed.RunRegistry(t.Context(), o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Stop)

	return r
}

func repository(t *testing.T, address string) oci.Reference {
	t.Helper()

	ref, err := oci.ParseRepository(address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return ref
}

// plainImages returns the items of images in a registry without TLS, which names of images cannot
// express.
func plainImages(t *testing.T, c *oci.Client, refs []oci.Reference, platforms ...string) []*Item {
	t.Helper()

	var items []*Item

	for _, ref := range refs {
		found, err := imageItems(t.Context(), c, ref, platforms)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		items = append(items, found...)
	}

	return items
}

var platforms = []string{"linux/amd64", "linux/arm64", "linux/s390x"}

// publishImages pushes two images for three platforms, which share a layer.
func publishImages(t *testing.T, c *oci.Client, address string) []oci.Reference {
	t.Helper()

	var refs []oci.Reference

	for i, name := range []string{"cluster-api/controller", "cluster-api/bootstrap"} {
		ref := repository(t, "http://"+address).Join(name).WithTag("v1.0.0")
		_, err := image.Push(t.Context(), c, ref, platforms, image.Random(3<<20, 1), image.Random(100<<10, uint64(i+10)))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		refs = append(refs, ref)
	}

	return refs
}

func testChart(t *testing.T) *chart.Chart {
	t.Helper()

	c, err := chart.New(
		chart.Metadata{APIVersion: "v2", Name: "infrastructure-x", Version: "1.0.0+a"},
		[]chart.File{{Name: "values.yaml", Data: []byte("a: b\n")}},
	)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return c
}

func items(t *testing.T, c *oci.Client, refs []oci.Reference, platforms ...string) []*Item {
	t.Helper()
	charts, err := NewChart(t.Context(), testChart(t))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return append(plainImages(t, c, refs, platforms...), charts)
}

func TestCopyToRegistry(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testCopyToRegistry(t, i) })
	}
}

func testCopyToRegistry(t *testing.T, i bed.Implementation) {
	g := NewWithT(t)
	c := newClient(t, oci.Options{})
	refs := publishImages(t, c, runRegistry(t, bed.RegistryOptions{Implementation: i}).Address)
	server := runRegistry(t, bed.RegistryOptions{Implementation: i, TLS: true, User: "me", Password: "secret"})
	to := newClient(t, oci.Options{CA: server.CA, Credentials: oci.StaticCredentials(server.Address, "me", "secret")})
	target := &Registry{Client: to, Base: repository(t, "oci://"+server.Address+"/mirror")}

	first := &tally{}
	again := &tally{}

	g.Expect(Copy(t.Context(), items(t, c, refs), target, Options{Parallel: 2, Observer: first})).To(Succeed())
	g.Expect(first.copied).To(Equal(3))

	for _, ref := range refs {
		from, err := c.Resolve(t.Context(), ref)
		g.Expect(err).NotTo(HaveOccurred())
		copied, err := to.Resolve(t.Context(), target.Base.Join(ref.Repository).WithTag("v1.0.0"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(copied.Digest).To(Equal(from.Digest))
	}

	pulled, err := to.PullChart(
		t.Context(),
		repository(t, target.ChartRepository()).Join("infrastructure-x").WithTag("1.0.0_a"),
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pulled.Chart).To(Equal(testChart(t)))
	g.Expect(target.ImageRegistry()).To(Equal(server.Address + "/mirror"))

	g.Expect(Copy(t.Context(), items(t, c, refs), target, Options{Parallel: 2, Observer: again})).To(Succeed())
	g.Expect(again.copied).To(BeZero())
	g.Expect(again.copiedBytes).To(BeZero())
	g.Expect(again.finished).To(Equal(3))

	// a tag that moved in the original registry is an error unless Overwrite is set
	_, err = image.Push(t.Context(), c, refs[0], platforms, image.Random(1<<10, 77))
	g.Expect(err).NotTo(HaveOccurred())
	err = Copy(t.Context(), items(t, c, refs), target, Options{Observer: again})
	g.Expect(err).
		To(MatchError(And(ContainSubstring("cluster-api/controller:v1.0.0"), ContainSubstring("never overwritten"))))

	target.Overwrite = true
	g.Expect(Copy(t.Context(), items(t, c, refs), target, Options{Observer: again})).To(Succeed())
}

func TestCopyToArchive(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testCopyToArchive(t, i) })
	}
}

func testCopyToArchive(t *testing.T, i bed.Implementation) {
	g := NewWithT(t)
	c := newClient(t, oci.Options{})
	published := publishImages(t, c, runRegistry(t, bed.RegistryOptions{Implementation: i}).Address)
	file := filepath.Join(t.TempDir(), "mirror.tar")
	write := func(refs []oci.Reference) *tally {
		a, err := CreateArchive(file)
		g.Expect(err).NotTo(HaveOccurred())

		counts := &tally{}
		g.Expect(Copy(t.Context(), items(t, c, refs), a, Options{Parallel: 3, Observer: counts})).To(Succeed())
		g.Expect(a.Close(t.Context())).To(Succeed())
		g.Expect(file + workSuffix).NotTo(BeADirectory())

		return counts
	}
	write(published)

	first, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	write(published)

	second, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(chart.Digest(second)).To(Equal(chart.Digest(first)), "the same content gives the same archive")

	archived, err := OpenArchive(t.Context(), file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(archived).To(HaveLen(3))
	g.Expect(archived[0].Name).To(Equal("charts/infrastructure-x:1.0.0_a"))
	g.Expect(int64(len(first))).To(BeNumerically("~", TotalSize(archived), 64<<10), "shared layers are included once")

	server := runRegistry(t, bed.RegistryOptions{Implementation: i})
	target := &Registry{Client: c, Base: repository(t, "http://"+server.Address)}
	g.Expect(Copy(t.Context(), archived, target, Options{Parallel: 2, Observer: &tally{}})).To(Succeed())

	for _, ref := range published {
		want, err := c.Resolve(t.Context(), ref)
		g.Expect(err).NotTo(HaveOccurred())
		got, err := c.Resolve(t.Context(), target.Base.Join(ref.Repository).WithTag("v1.0.0"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Digest).To(Equal(want.Digest))
	}

	_, err = c.PullChart(t.Context(), target.Base.Join("charts/infrastructure-x").WithTag("1.0.0_a"))
	g.Expect(err).NotTo(HaveOccurred())
}

func TestImagesForPlatforms(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t, oci.Options{})
	refs := publishImages(t, c, runRegistry(t, bed.RegistryOptions{}).Address)
	all := plainImages(t, c, refs[:1])
	some := plainImages(t, c, refs[:1], "linux/arm64")
	g.Expect(len(some[0].blobs)).To(BeNumerically("<", len(all[0].blobs)))

	target := &Registry{Client: c, Base: repository(t, "http://"+runRegistry(t, bed.RegistryOptions{}).Address)}
	g.Expect(Copy(t.Context(), some, target, Options{Observer: &tally{}})).To(Succeed())
	manifests, err := c.Index(t.Context(), target.Base.Join(refs[0].Repository).WithTag("v1.0.0"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifests).To(HaveLen(1))
	g.Expect(manifests[0].Platform.Architecture).To(Equal("arm64"))

	_, err = imageItems(t.Context(), c, refs[0], []string{"windows/amd64"})
	g.Expect(err).
		To(MatchError(ContainSubstring("is for linux/amd64, linux/arm64, linux/s390x and not for windows/amd64")))
	root, err := c.Resolve(t.Context(), refs[0])
	g.Expect(err).NotTo(HaveOccurred())
	whole, err := imageItems(t.Context(), c, refs[0].WithTag("").WithDigest(root.Digest), []string{"linux/arm64"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(whole[0].Root.Digest).To(Equal(root.Digest))
	g.Expect(whole[0].Note).To(ContainSubstring("named by its digest"))
	g.Expect(Copy(t.Context(), whole, target, Options{Observer: &tally{}})).To(Succeed())
	_, err = c.Resolve(t.Context(), target.Base.Join(refs[0].Repository).WithDigest(root.Digest))
	g.Expect(err).NotTo(HaveOccurred())
}

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

func TestOpenArchiveErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.tar")
	NewWithT(t).Expect(os.WriteFile(text, []byte("hello"), 0o600)).To(Succeed())
	_, err := OpenArchive(t.Context(), text)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("not an OCI image layout")))
	_, err = OpenArchive(t.Context(), filepath.Join(dir, "none.tar"))
	NewWithT(t).Expect(err).To(MatchError(os.ErrNotExist))
}

// TestCopyBoundsMemory checks that memory does not depend on the size of layers.
func TestCopyBoundsMemory(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t, oci.Options{})
	server := runRegistry(t, bed.RegistryOptions{})
	peak := func(size int, name string) int64 {
		ref := repository(t, "http://"+server.Address).Join(name).WithTag("v1.0.0")
		_, err := image.Push(t.Context(), c, ref, nil, image.Random(size, 5), image.Random(size, 6))
		g.Expect(err).NotTo(HaveOccurred())

		items := plainImages(t, c, []oci.Reference{ref})
		a, err := CreateArchive(filepath.Join(t.TempDir(), "mirror.tar"))
		g.Expect(err).NotTo(HaveOccurred())
		runtime.GC()

		stop := highWater()

		g.Expect(Copy(t.Context(), items, a, Options{Parallel: 4, Observer: &tally{}})).To(Succeed())
		g.Expect(a.Close(t.Context())).To(Succeed())

		return stop()
	}
	small := peak(1<<20, "small")
	large := peak(64<<20, "large")
	t.Logf("heap at most: %d KiB for 2 MiB, %d KiB for 128 MiB", small>>10, large>>10)
	g.Expect(large).To(BeNumerically("<", 16<<20))
}

// highWater samples the heap until stop is called, which returns the maximum growth in bytes.
func highWater() (stop func() int64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)

	start := int64(m.HeapAlloc)
	done := make(chan struct{})

	var peak atomic.Int64

	go func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()

		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), int64(m.HeapAlloc)-start))
			}
		}
	}()

	return func() int64 { close(done); return peak.Load() }
}
