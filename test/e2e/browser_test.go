package e2e

import (
	"bytes"
	"cmp"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// tab is a tab of a browser.
type tab struct {
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// openTab opens a page in Chromium until the spec ends. The spec is skipped if there is no Chromium.
func openTab(ctx context.Context, page string) *tab {
	GinkgoHelper()

	program, err := exec.LookPath("chromium")
	if err != nil {
		Skip("this needs a browser: install Debian's package chromium")
	}

	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	ctx, cancel := chromedp.NewExecAllocator(ctx, options...)
	DeferCleanup(cancel)

	ctx, cancel = chromedp.NewContext(ctx)
	DeferCleanup(cancel)

	t := &tab{ctx: ctx}

	chromedp.ListenTarget(ctx, func(event any) {
		switch event := event.(type) {
		case *log.EventEntryAdded:
			t.report(event.Entry.Text)
		case *runtime.EventExceptionThrown:
			t.report(event.ExceptionDetails.Error())
		}
	})
	Expect(chromedp.Run(ctx)).To(Succeed()) // the browser ends with the context of its first actions
	t.run(log.Enable(), chromedp.Navigate(page), painted)

	return t
}

// report notes a problem.
func (t *tab) report(problem string) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.problems = append(t.problems, problem)
}

// expectClean checks that the content security policy was not violated, and that the script had no errors.
func (t *tab) expectClean() {
	GinkgoHelper()

	t.mu.Lock()
	defer t.mu.Unlock()

	Expect(t.problems).To(BeEmpty())
}

// painted waits until the page is on the screen: before that, parts with content-visibility have no visible text.
var painted = chromedp.Evaluate(
	`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, nil,
	func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) })

func (t *tab) run(actions ...chromedp.Action) {
	GinkgoHelper()

	ctx, cancel := context.WithTimeout(t.ctx, time.Minute)
	defer cancel()

	Expect(chromedp.Run(ctx, actions...)).To(Succeed())
}

// text returns the visible text of an element, or nothing if there is no such element.
func (t *tab) text(selector string) string {
	GinkgoHelper()

	text, _ := t.evaluate(`document.querySelector("` + selector + `")?.innerText`).(string)

	return text
}

// evaluate returns the value of an expression.
func (t *tab) evaluate(expression string) any {
	GinkgoHelper()

	var value any

	t.run(chromedp.Evaluate(expression, &value))

	return value
}

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

// changing matches what is another one each time that a page is shown.
var changing = regexp.MustCompile(`\b\d+[smh](\d+[sm])?\b`)

// picture makes sure that the tab shows the words of a picture in the documentation, which are in a file beside it.
// With the folder SCREENSHOTS, it makes the picture; see the target screenshots of the Makefile.
func (t *tab) picture(name string) {
	GinkgoHelper()

	shown := t.evaluate(`[...document.querySelectorAll("main > :not(details)")].map(e => e.innerText).join("\n")`)
	words := changing.ReplaceAllString(shown.(string), "…") + "\n"

	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		pictured := must(os.ReadFile(filepath.Join(root, "docs", "images", name+".txt")))
		Expect(words).To(Equal(string(pictured)), "the picture has other words: run make screenshots")

		return
	}

	Expect(os.WriteFile(filepath.Join(folder, name+".txt"), []byte(words), 0o644)).To(Succeed())

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
