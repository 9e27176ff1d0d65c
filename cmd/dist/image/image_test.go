package image

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestWriteIsReproducible(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	created := time.Unix(1, 0)
	amd64 := ocispec.Platform{OS: "linux", Architecture: "amd64"}
	arm64 := ocispec.Platform{OS: "linux", Architecture: "arm64"}

	build := func(name string, files ...File) (string, []byte) {
		file := filepath.Join(dir, name)
		digest, err := Write(t.Context(), file, "example.org/a:v1",
			Image{Platform: amd64, Files: files, Created: created},
			Image{Platform: arm64, Files: files, Created: created})
		g.Expect(err).NotTo(HaveOccurred())
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())

		return digest, data
	}

	a := File{Path: "bin/a", Data: []byte("a"), Mode: 0o755}
	b := File{Path: "etc/b", Data: []byte("b"), Mode: 0o644}

	firstDigest, first := build("first", a, b)
	secondDigest, second := build("second", b, a)
	g.Expect(secondDigest).To(Equal(firstDigest), "order does not matter")
	g.Expect(second).To(Equal(first))

	otherDigest, _ := build("other", a)
	g.Expect(otherDigest).NotTo(Equal(firstDigest))
}
