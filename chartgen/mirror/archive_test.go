package mirror

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
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

func TestCopyToArchive(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testCopyToArchive(t, i) })
	}
}

func testCopyToArchive(t *testing.T, i bed.Implementation) {
	g := NewWithT(t)
	c := newClient(t, transport.Options{})
	published := publishImages(t, c, runRegistry(t, bed.RegistryOptions{Implementation: i}).Address)
	file := filepath.Join(t.TempDir(), "mirror.tar")
	write := func() (copied int64) {
		a, err := CreateArchive(file)
		g.Expect(err).NotTo(HaveOccurred())

		var counts tally

		g.Expect(Copy(t.Context(), items(t, c, published), a, counts.options(3))).To(Succeed())
		g.Expect(a.Close()).To(Succeed())
		g.Expect(file + workSuffix).NotTo(BeADirectory())

		return counts.bytes.Load()
	}
	g.Expect(write()).To(BeNumerically(">", 3<<20))

	first, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(write()).To(BeZero(), "the archive has everything")

	second, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(chart.Digest(second)).To(Equal(chart.Digest(first)), "the same content gives the same archive")

	archived, err := OpenArchive(t.Context(), file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(archived).To(HaveLen(3))
	g.Expect(archived).To(ContainElement(HaveField("Name", "charts/infrastructure-x:1.0.0_a")))
	g.Expect(int64(len(first))).To(BeNumerically("~", TotalSize(archived), 64<<10), "shared layers are included once")

	server := runRegistry(t, bed.RegistryOptions{Implementation: i})
	target := &Registry{Client: c, Base: repository(t, "http://"+server.Address)}
	g.Expect(Copy(t.Context(), archived, target, Options{Parallel: 2})).To(Succeed())

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
	c := newClient(t, transport.Options{})
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

		g.Expect(Copy(t.Context(), items, a, Options{Parallel: 4})).To(Succeed())
		g.Expect(a.Close()).To(Succeed())

		return stop()
	}
	small := peak(1<<20, "small")
	large := peak(64<<20, "large")
	t.Logf("heap at most: %d KiB for 2 MiB, %d KiB for 128 MiB", small>>10, large>>10)
	g.Expect(large).To(BeNumerically("<", 16<<20))
}

// highWater samples the heap until stop is called, which returns the maximum growth in bytes.
func highWater() (stop func() int64) {
	percent := debug.SetGCPercent(100) // as users have it, whatever GOGC is in the tests

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

	return func() int64 {
		close(done)
		debug.SetGCPercent(percent)

		return peak.Load()
	}
}
