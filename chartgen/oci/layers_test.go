package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/image"
)

const folder = "capi-manifests"

func reference(t *testing.T, address string) oci.Reference {
	t.Helper()

	ref, err := oci.Parse(address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return ref
}

func newRepository(t *testing.T) (*oci.Client, oci.Reference) {
	t.Helper()
	g := NewWithT(t)
	r, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: t.TempDir()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Stop)

	c, err := oci.NewClient(transport.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	return c, reference(t, "http://"+r.Address+"/images/x:v1")
}

func read(t *testing.T, c *oci.Client, ref oci.Reference) (map[string]string, error) {
	t.Helper()
	_, artifact, err := c.Image(t.Context(), ref)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	files, err := c.Files(
		t.Context(),
		artifact,
		[]string{folder, "deep/er"},
		func(map[string][]byte) bool { return false },
	)

	texts := map[string]string{}
	for name, data := range files {
		texts[name] = string(data)
	}

	return texts, err
}

func file(name, content string) image.Entry { return image.Entry{Name: name, Content: content} }

func TestFiles(t *testing.T) {
	c, ref := newRepository(t)
	base := image.Layer(
		file("etc/passwd", "x"),
		file(folder+"/a.yaml", "old a"),
		file(folder+"/b.yaml", "old b"),
		file("./deep/er/c.yaml", "c"),
	)
	plain := func(entries ...image.Entry) []byte {
		r, err := gzip.NewReader(bytes.NewReader(image.Layer(entries...)))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		data, err := io.ReadAll(r)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		return data
	}
	encoder, err := zstd.NewWriter(nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for name, test := range map[string]struct {
		layers [][]byte
		files  map[string]string
	}{
		"one layer": {
			layers: [][]byte{base},
			files:  map[string]string{folder + "/a.yaml": "old a", folder + "/b.yaml": "old b", "deep/er/c.yaml": "c"},
		},
		"the newest layer wins": {
			layers: [][]byte{base, image.Layer(file(folder+"/a.yaml", "new a"))},
			files:  map[string]string{folder + "/a.yaml": "new a", folder + "/b.yaml": "old b", "deep/er/c.yaml": "c"},
		},
		"a deleted file": {
			layers: [][]byte{base, image.Layer(file(folder+"/.wh.a.yaml", ""))},
			files:  map[string]string{folder + "/b.yaml": "old b", "deep/er/c.yaml": "c"},
		},
		"a deleted folder": {
			layers: [][]byte{base, image.Layer(file(".wh."+folder, "")), image.Layer(file("x", ""))},
			files:  map[string]string{"deep/er/c.yaml": "c"},
		},
		"a deleted parent folder": {
			layers: [][]byte{base, image.Layer(file(".wh.deep", ""))},
			files:  map[string]string{folder + "/a.yaml": "old a", folder + "/b.yaml": "old b"},
		},
		"an opaque folder hides older files only": {
			layers: [][]byte{base, image.Layer(file(folder+"/.wh..wh..opq", ""), file(folder+"/n.yaml", "n"))},
			files:  map[string]string{folder + "/n.yaml": "n", "deep/er/c.yaml": "c"},
		},
		"deleted and created again": {
			layers: [][]byte{base, image.Layer(file(folder+"/.wh.a.yaml", "")), image.Layer(file(folder+"/a.yaml", "newest a"))},
			files:  map[string]string{folder + "/a.yaml": "newest a", folder + "/b.yaml": "old b", "deep/er/c.yaml": "c"},
		},
		"uncompressed": {
			layers: [][]byte{plain(file(folder+"/a.yaml", "a"))},
			files:  map[string]string{folder + "/a.yaml": "a"},
		},
		"an opaque root": {
			layers: [][]byte{base, image.Layer(file(".wh..wh..opq", ""), file(folder+"/n.yaml", "n"))},
			files:  map[string]string{folder + "/n.yaml": "n"},
		},
		"zstd": {
			layers: [][]byte{encoder.EncodeAll(plain(file(folder+"/a.yaml", "a")), nil)},
			files:  map[string]string{folder + "/a.yaml": "a"},
		},
		"links elsewhere are ignored": {
			layers: [][]byte{
				image.Layer(image.Entry{Name: "bin", Type: tar.TypeSymlink, Link: "usr/bin"}, file(folder+"/a.yaml", "a")),
			},
			files: map[string]string{folder + "/a.yaml": "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := image.Push(t.Context(), c, ref, []string{"linux/arm64", "linux/amd64"}, test.layers...)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(read(t, c, ref)).To(Equal(test.files))
		})
	}
}

func TestFilesStopsWhenComplete(t *testing.T) {
	g := NewWithT(t)
	c, ref := newRepository(t)
	_, err := image.Push(
		t.Context(),
		c,
		ref,
		nil,
		[]byte("not an archive at all"),
		image.Layer(file(folder+"/a.yaml", "a")),
	)
	g.Expect(err).NotTo(HaveOccurred())
	_, artifact, err := c.Image(t.Context(), ref)
	g.Expect(err).NotTo(HaveOccurred())
	files, err := c.Files(
		t.Context(),
		artifact,
		[]string{folder},
		func(files map[string][]byte) bool { return files[folder+"/a.yaml"] != nil },
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(1))
}
