package image

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestTheSameFilesAreTheSameBytes(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	build := func(name string, files ...File) (string, []byte) {
		file := filepath.Join(dir, name)
		digest, err := Write(t.Context(), file, "example.org/a:v1",
			Image{Platform: ocispec.Platform{OS: "linux", Architecture: "amd64"}, Files: files, Created: time.Unix(1, 0)},
			Image{Platform: ocispec.Platform{OS: "linux", Architecture: "arm64"}, Files: files, Created: time.Unix(1, 0)})
		g.Expect(err).NotTo(HaveOccurred())
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())

		return digest, data
	}
	a, b := File{Path: "bin/a", Data: []byte("a"), Mode: 0o755}, File{Path: "etc/b", Data: []byte("b"), Mode: 0o644}
	firstDigest, first := build("first", a, b)
	secondDigest, second := build("second", b, a)
	g.Expect(secondDigest).To(Equal(firstDigest), "order does not matter")
	g.Expect(second).To(Equal(first))

	otherDigest, _ := build("other", a)
	g.Expect(otherDigest).NotTo(Equal(firstDigest))
}
