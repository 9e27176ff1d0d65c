package chart

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	. "github.com/onsi/gomega"
)

// TestNewKeepsNoText: a chart does not keep the components in memory whose parts are in its metadata.
func TestNewKeepsNoText(t *testing.T) {
	g := NewWithT(t)

	text := strings.Repeat("namespace: system, contract: v1beta2\n", 1000)
	kept := weak.Make(unsafe.StringData(text))

	c, err := New(Metadata{
		Name: text[11:17], Version: "1.0.0", AppVersion: text[29:31], Description: text[:20],
		Keywords: []string{text[11:17]}, Annotations: map[string]string{text[:9]: text[11:17]},
	}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Metadata.Annotations).To(Equal(map[string]string{"namespace": "system"}))

	g.Eventually(func() *byte {
		runtime.GC()

		return kept.Value()
	}).Should(BeNil())

	runtime.KeepAlive(c)
}
