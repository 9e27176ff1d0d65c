package e2e

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// show opens a page on a screen with a height, in a scheme of colors: light or dark.
func (t *tab) show(page, scheme string, height int64) {
	GinkgoHelper()

	colors := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme}
	t.run(
		chromedp.EmulateViewport(1280, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{colors}),
		chromedp.Navigate(page), chromedp.WaitVisible("main"), painted,
	)
}

// picture saves what the tab shows in the folder SCREENSHOTS, if it is set. The pictures of the documentation are made
// like that; see the target screenshots of the Makefile.
func (t *tab) picture(name string) {
	GinkgoHelper()

	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}

	var taken []byte

	t.run(chromedp.CaptureScreenshot(&taken))

	picture, err := png.Decode(bytes.NewReader(taken))
	Expect(err).NotTo(HaveOccurred())

	var small bytes.Buffer

	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	Expect(encoder.Encode(&small, withPalette(picture))).To(Succeed())

	file := filepath.Join(folder, name+".png")
	Expect(os.WriteFile(file, small.Bytes(), 0o644)).To(Succeed())
}

// withPalette returns a picture in its 256 most frequent colors, which has a third of the size.
func withPalette(picture image.Image) image.Image {
	counts := map[color.RGBA]int{}
	bounds := picture.Bounds()

	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)]++
		}
	}

	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})

	var palette color.Palette
	for _, c := range frequent[:min(len(frequent), 256)] {
		palette = append(palette, c)
	}

	small := image.NewPaletted(bounds, palette)
	draw.Draw(small, bounds, picture, bounds.Min, draw.Src)

	return small
}
