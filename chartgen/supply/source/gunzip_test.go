package source

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// TestGunzip: decompressing takes as much memory as the result, and no more than possible on a false promise.
func TestGunzip(t *testing.T) {
	g := NewWithT(t)

	text := bytes.Repeat([]byte("components of a provider\n"), 1<<15)

	var compressed bytes.Buffer

	w := gzip.NewWriter(&compressed)
	_, err := w.Write(text)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Close()).To(Succeed())

	data := compressed.Bytes()
	got, err := gunzip(data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Equal(got, text)).To(BeTrue())
	g.Expect(cap(got)).To(BeNumerically("<", len(text)*5/4))

	promise := func(size int, claimed uint32) int {
		data := make([]byte, size)
		binary.LittleEndian.PutUint32(data[size-4:], claimed)

		return claimedSize(data)
	}
	g.Expect(promise(1000, 500)).To(Equal(500))
	g.Expect(promise(1000, 1<<32-1)).To(Equal(1032000))
	g.Expect(promise(1<<20, 1<<32-1)).To(Equal(limit.MaxText))
	g.Expect(gunzip([]byte("no gzip"))).Error().To(HaveOccurred())
}
