package mirror

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/image"
)

// tally counts bytes and items.
type tally struct {
	bytes            atomic.Int64
	copied, finished atomic.Int32
}

// options returns options that count.
func (c *tally) options(parallel int) Options {
	return Options{
		Parallel: parallel,
		Progress: func(n int64) { c.bytes.Add(n) },
		Finished: func(_ *Item, result Result) {
			c.finished.Add(1)

			if result.Copied > 0 {
				c.copied.Add(1)
			}
		},
	}
}

func newClient(t *testing.T, o transport.Options) *oci.Client {
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

// TestImagesAreLookedUpInParallel: a registry that is far away is asked for several images at a time.
func TestImagesAreLookedUpInParallel(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t, transport.Options{})

	const parallel = 3

	registry := &hostile{manifests: map[string][]byte{}}
	registry.manifests["v1.0.0"] = registry.manifests[registry.add(nil).Digest.String()]

	// The first requests are answered once there are as many.
	var asked atomic.Int32

	together := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == parallel {
			close(together)
		}

		select {
		case <-together:
			registry.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)

	names := []string{server.URL + "/a:v1.0.0", server.URL + "/b:v1.0.0", server.URL + "/c:v1.0.0"}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	found, err := Images(ctx, c, names, nil, parallel)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveExactElements(
		HaveField("Repository", "a"), HaveField("Repository", "b"), HaveField("Repository", "c")))
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
	c := newClient(t, transport.Options{})
	refs := publishImages(t, c, runRegistry(t, bed.RegistryOptions{Implementation: i}).Address)
	server := runRegistry(t, bed.RegistryOptions{Implementation: i, TLS: true, User: "me", Password: "secret"})
	to := newClient(t, transport.Options{
		CA: server.CA, Credentials: bed.Login(server.Address, "me", "secret"),
	})
	target := &Registry{Client: to, Base: repository(t, "oci://"+server.Address+"/mirror")}

	var first, again tally

	g.Expect(Copy(t.Context(), items(t, c, refs), target, first.options(2))).To(Succeed())
	g.Expect(first.copied.Load()).To(BeEquivalentTo(3))

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

	g.Expect(Copy(t.Context(), items(t, c, refs), target, again.options(2))).To(Succeed())
	g.Expect(again.bytes.Load()).To(BeZero())
	g.Expect(again.finished.Load()).To(BeEquivalentTo(3))

	// a tag that moved in the original registry is an error unless Overwrite is set
	_, err = image.Push(t.Context(), c, refs[0], platforms, image.Random(1<<10, 77))
	g.Expect(err).NotTo(HaveOccurred())
	err = Copy(t.Context(), items(t, c, refs), target, Options{})
	g.Expect(err).
		To(MatchError(And(ContainSubstring("cluster-api/controller:v1.0.0"), ContainSubstring("never overwritten"))))

	target.Overwrite = true
	g.Expect(Copy(t.Context(), items(t, c, refs), target, Options{})).To(Succeed())

	other, err := chart.New(testChart(t).Metadata, []chart.File{{Name: "values.yaml", Data: []byte("a: c\n")}})
	g.Expect(err).NotTo(HaveOccurred())
	moved, err := NewChart(t.Context(), other)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Copy(t.Context(), []*Item{moved}, target, Options{})).To(
		MatchError(ContainSubstring("mirror charts/infrastructure-x:1.0.0_a: the tag exists already")),
		"tags of charts never move",
	)
}

func TestImagesForPlatforms(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t, transport.Options{})
	refs := publishImages(t, c, runRegistry(t, bed.RegistryOptions{}).Address)
	all := plainImages(t, c, refs[:1])
	some := plainImages(t, c, refs[:1], "linux/arm64")
	g.Expect(len(some[0].sizes)).To(BeNumerically("<", len(all[0].sizes)))

	target := &Registry{Client: c, Base: repository(t, "http://"+runRegistry(t, bed.RegistryOptions{}).Address)}
	g.Expect(Copy(t.Context(), some, target, Options{})).To(Succeed())
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

	archive, err := CreateArchive(filepath.Join(t.TempDir(), "mirror.tar"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Copy(t.Context(), whole, archive, Options{})).To(Succeed())
	g.Expect(archive.Close()).To(Succeed())
	carried, err := OpenArchive(t.Context(), archive.file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Copy(t.Context(), carried, target, Options{})).To(Succeed())
	_, err = c.Resolve(t.Context(), target.Base.Join(refs[0].Repository).WithDigest(root.Digest))
	g.Expect(err).NotTo(HaveOccurred())
}

// TestCopyFailure: what is not copied does not count as done, and a cause is named once, with all items it concerns.
func TestCopyFailure(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t, transport.Options{})
	published := publishImages(t, c, runRegistry(t, bed.RegistryOptions{}).Address)

	var counts tally

	err := Copy(t.Context(), plainImages(t, c, published), &Registry{Client: c, Base: repository(t, "http://127.0.0.1:1")},
		counts.options(1))
	g.Expect(err).To(MatchError(MatchRegexp(`^mirror \S+/controller:v1\.0\.0, \S+/bootstrap:v1\.0\.0: ` +
		`dial tcp 127\.0\.0\.1:1: connect: connection refused; check that 127\.0\.0\.1:1 can be reached from here$`)))
	g.Expect(counts.copied.Load()).To(BeZero())
}
