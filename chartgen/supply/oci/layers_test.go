package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
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

	c, err := oci.NewClient(oci.Options{})
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

// zeros returns a layer with files of zeros, compressed to a thousandth: each MiB is the same member
// of the gzip stream.
func zeros(names []string, size int64) []byte {
	const unit = 1 << 20

	member := func(data []byte) []byte {
		var out bytes.Buffer

		zip := gzip.NewWriter(&out)
		_, _ = zip.Write(data)
		_ = zip.Close()

		return out.Bytes()
	}
	mebibyte := member(make([]byte, unit))

	var out bytes.Buffer

	for _, name := range names {
		var header bytes.Buffer

		_ = tar.NewWriter(&header).WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size, Mode: 0o644})
		out.Write(member(header.Bytes()))
		out.Write(bytes.Repeat(mebibyte, int(size/unit)))
	}

	out.Write(member(make([]byte, 1024)))

	return out.Bytes()
}

// highWater samples the heap until stop is called, which returns the maximum growth in bytes.
func highWater() (stop func() int64) {
	runtime.GC()

	var m runtime.MemStats
	runtime.ReadMemStats(&m)

	start := int64(m.HeapAlloc)
	done := make(chan struct{})

	var peak atomic.Int64

	go func() {
		ticker := time.NewTicker(2 * time.Millisecond)
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

func TestFilesRefusesHostileImages(t *testing.T) {
	c, ref := newRepository(t)

	many := make([]string, 4200)
	for i := range many {
		many[i] = folder + "/" + strings.Repeat("x", i/100) + string(rune('a'+i%26)) + strings.Repeat("y", i%100)
	}

	bomb := zeros([]string{"bomb", "bomb2"}, 2200<<20) // 4.3 GiB in 4 MiB
	for name, test := range map[string]struct {
		layer   []byte
		message string
	}{
		"a symbolic link in the folder": {
			layer:   image.Layer(image.Entry{Name: folder + "/a.yaml", Type: tar.TypeSymlink, Link: "/etc/shadow"}),
			message: "not a regular file",
		},
		"the folder is a symbolic link": {
			layer:   image.Layer(image.Entry{Name: folder, Type: tar.TypeSymlink, Link: "/etc"}),
			message: "not a regular file",
		},
		"a hard link": {
			layer:   image.Layer(image.Entry{Name: folder + "/a.yaml", Type: tar.TypeLink, Link: "etc/shadow"}),
			message: "not a regular file",
		},
		"a device": {
			layer:   image.Layer(image.Entry{Name: folder + "/a.yaml", Type: tar.TypeChar}),
			message: "not a regular file",
		},
		"the folder is a file": {layer: image.Layer(file(folder, "x")), message: "it must be a folder"},
		"a large file": {
			layer:   zeros([]string{folder + "/big.yaml"}, 33<<20),
			message: "32 MiB in a file",
		},
		"large files": {
			layer:   zeros([]string{folder + "/1.yaml", folder + "/2.yaml", folder + "/3.yaml"}, 30<<20),
			message: "64 MiB",
		},
		"too many files":           {layer: zeros(many, 0), message: "4096 files"},
		"a bomb beside the folder": {layer: bomb, message: "larger than 4 GiB"},
		"no archive": {
			layer: []byte(
				"<html>not an archive, but long enough to be one of the many things that are mistaken for one</html>",
			),
			message: "not a tar archive",
		},
		"a path out of the image and back": {
			layer: image.Layer(
				image.Entry{Name: "x/../../" + folder + "/../" + folder + "/a.yaml", Type: tar.TypeSymlink, Link: "/"},
			),
			message: "not a regular file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := image.Push(t.Context(), c, ref, nil, test.layer)
			g.Expect(err).NotTo(HaveOccurred())

			stop := highWater()
			began := time.Now()
			_, err = read(t, c, ref)
			peak := stop()

			g.Expect(oci.IsReason(err, oci.Invalid)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(test.message)))
			t.Logf("refused after %s with %d MiB of heap at most", time.Since(began).Round(time.Millisecond), peak>>20)
			g.Expect(peak).To(BeNumerically("<", 200<<20))
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
