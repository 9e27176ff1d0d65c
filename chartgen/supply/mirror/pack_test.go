package mirror

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/test/image"
)

// TestPack: an archive has the bytes that the package tar gives it.
func TestPack(t *testing.T) {
	g := NewWithT(t)
	a := &Archive{work: t.TempDir()}
	file := filepath.Join(t.TempDir(), "mirror.tar")
	index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex}

	var want bytes.Buffer

	w := tar.NewWriter(&want)
	entry := func(name string, data []byte) string {
		g.Expect(w.WriteHeader(newHeader(name, int64(len(data))))).To(Succeed())
		_, err := w.Write(data)
		g.Expect(err).NotTo(HaveOccurred())

		return name
	}

	addJSON := func(name string, value any) {
		data, err := json.Marshal(value)
		g.Expect(err).NotTo(HaveOccurred())
		entry(name, data)
	}
	addJSON(ocispec.ImageLayoutFile, ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	addJSON(ocispec.ImageIndexFile, index)

	var blobs []string

	for i, size := range []int{0, 1, 511, 512, 513, 1 << 20} {
		name := string(rune('a' + i))
		data := image.Random(size, uint64(i))
		g.Expect(os.WriteFile(filepath.Join(a.work, name), data, 0o600)).To(Succeed())
		blobs = append(blobs, entry(name, data))
	}

	g.Expect(w.Close()).To(Succeed())
	g.Expect(a.pack(file, index, blobs)).To(Succeed())

	got, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Equal(got, want.Bytes())).To(BeTrue())

	g.Expect(a.pack(file, index, []string{"none"})).To(MatchError(os.ErrNotExist))
}

// BenchmarkPack measures writing the archive once all blobs are there.
func BenchmarkPack(b *testing.B) {
	const size = 64 << 20

	a := &Archive{work: b.TempDir()}
	if err := os.WriteFile(filepath.Join(a.work, "layer"), image.Random(size, 1), 0o600); err != nil {
		b.Fatal(err)
	}

	file := filepath.Join(b.TempDir(), "mirror.tar")

	b.SetBytes(size)
	b.ReportAllocs()

	for b.Loop() {
		if err := a.pack(file, ocispec.Index{}, []string{"layer"}); err != nil {
			b.Fatal(err)
		}
	}
}
