package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/image"
)

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
	percent := debug.SetGCPercent(100) // as users have it, whatever GOGC is in the tests

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

	return func() int64 {
		close(done)
		debug.SetGCPercent(percent)

		return peak.Load()
	}
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
		"the folder is a file": {layer: image.Layer(file(folder, "x")), message: "is not a regular file in a folder"},
		"a large file": {
			layer:   zeros([]string{folder + "/big.yaml"}, 33<<20),
			message: "32 MiB and 4096 files",
		},
		"large files": {
			layer:   zeros([]string{folder + "/1.yaml", folder + "/2.yaml", folder + "/3.yaml"}, 30<<20),
			message: "32 MiB",
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

			g.Expect(transport.Is(err, transport.Invalid)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(test.message)))
			t.Logf("refused after %s with %d MiB of heap at most", time.Since(began).Round(time.Millisecond), peak>>20)
			g.Expect(peak).To(BeNumerically("<", 200<<20))
		})
	}
}
