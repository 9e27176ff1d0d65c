package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// hostile is a text that runs code wherever it is not escaped.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>`

// browser starts Chromium. The test is skipped if there is none.
func browser(t *testing.T) context.Context {
	t.Helper()

	program := ""

	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}

	if program == "" {
		t.Skip("this needs a browser: install Debian's package chromium")
	}

	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)

	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)

	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)

	NewWithT(t).Expect(chromedp.Run(ctx)).To(Succeed())

	return ctx
}

// tab is a tab of the browser, with what must not happen in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// screen is what a page is shown on.
type screen struct {
	width  int64
	scheme string // of colors: light or dark
}

// open opens a page in a new tab. Afterwards it checks that no code of texts ran, that the content policy
// was not violated, and that nothing was loaded from another server.
func open(t *testing.T, browser context.Context, s *site, path string, shown screen) *tab {
	t.Helper()

	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)

	b := &tab{t: t, ctx: ctx}
	origin, _, _ := strings.Cut(strings.TrimPrefix(s.URL(), "http://"), "/")

	chromedp.ListenTarget(ctx, func(event any) {
		switch event := event.(type) {
		case *log.EventEntryAdded:
			b.report("log: " + event.Entry.Text)
		case *runtime.EventExceptionThrown:
			b.report("exception: " + event.ExceptionDetails.Error())
		case *page.EventJavascriptDialogOpening:
			b.report("dialog: " + event.Message)
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(event.Request.URL, "http://"+origin+"/") {
				b.report("request: " + event.Request.URL)
			}
		}
	})

	scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: shown.scheme}

	b.run(
		network.Enable(), log.Enable(), chromedp.EmulateViewport(shown.width, 900),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{scheme}),
		chromedp.Navigate(s.URL()+path),
	)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()

		NewWithT(t).Expect(b.problems).To(BeEmpty())
	})

	return b
}

func (b *tab) report(problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.problems = append(b.problems, problem)
}

// forget forgets the problems so far, after a test has caused them.
func (b *tab) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.problems = nil
}

func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	NewWithT(b.t).Expect(chromedp.Run(b.ctx, actions...)).To(Succeed())
}

// evaluate returns the value of an expression.
func (b *tab) evaluate(expression string) any {
	b.t.Helper()

	var value any

	b.run(chromedp.Evaluate(expression, &value, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	}))

	return value
}

const notApplied = "v1.0.0 runs; v2.0.0 is not applied"

// failing returns a provider that cannot be installed.
func failing(name, message string) v1alpha2.Provider {
	p := aws(name)
	p.GetSpec().Version = "v2.0.0"
	p.GetStatus().InstalledVersion = new("v1.0.0")
	p.GetStatus().Contract = new("v1beta2")
	p.SetConditions([]metav1.Condition{
		{
			Type: v1alpha2.ReadyCondition, Status: metav1.ConditionFalse, Reason: "InstallFailed",
			Message: notApplied + ": " + message,
		},
		{
			Type: v1alpha2.StalledCondition, Status: metav1.ConditionTrue, Reason: "InstallFailed", Message: notApplied,
		},
	})

	return p
}

func ready(name string) v1alpha2.Provider {
	p := failing(name, "")
	p.SetConditions([]metav1.Condition{{
		Type: v1alpha2.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1alpha2.HealthyReason,
		Message: "v1.0.0 is healthy",
	}})
	p.GetStatus().AvailableUpgrades = []v1alpha2.AvailableUpgrade{{Version: "v2.1.0", Contract: "v1beta2"}}

	return p
}

// desktop is the screen of tests that do not depend on it.
var desktop = screen{width: 1280, scheme: "light"}

const awsPage = "providers/InfrastructureProvider/capa-system/aws"

// TestBrowserPages checks all pages, on screens of all sizes and in both color schemes: texts run no code, nothing is
// wider than the screen, and axe-core finds no barrier.
func TestBrowserPages(t *testing.T) {
	chromium := browser(t)
	s := newSite(t)
	s.memory.set(failing("aws", hostile), ready("azure"))

	axe, err := fetchAxe(t.Context(), t.TempDir())
	if err != nil {
		t.Logf("accessibility is not checked: %s", err)
	}

	for name, path := range map[string]string{
		"overview": "", "provider": awsPage, "compare": awsPage + "/compare?from=6&to=7",
	} {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{360, 1280} {
				view := fmt.Sprintf("%s-%s-%d", name, scheme, width)
				t.Run(view, func(t *testing.T) {
					g := NewWithT(t)
					b := open(t, chromium, s, path, screen{width, scheme})

					g.Expect(b.evaluate(`document.documentElement.scrollWidth`)).To(BeNumerically("<=", width))
					g.Expect(b.evaluate(`getComputedStyle(document.querySelector(".copy")).display`)).NotTo(Equal("none"))
					g.Expect(b.evaluate(`[...document.querySelectorAll(".verdict > div")].every(
						message => message.scrollHeight <= message.clientHeight)`)).To(BeTrue(), "no cause is cut")

					if axe != "" {
						b.run(chromedp.Evaluate(axe, nil))
						g.Expect(b.evaluate(axeViolations)).To(Equal("[]"))
					}
				})
			}
		}
	}
}

// soon is longer than the interval in which a page is read again.
const soon = 20 * time.Second

// TestBrowserUpdates checks that a page follows the cluster without being loaded again, and shows when it cannot.
func TestBrowserUpdates(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	b := open(t, browser(t), s, "", desktop)

	value := func(expression string) func() any { return func() any { return b.evaluate(expression) } }
	text := value(`document.getElementById("providers").innerText`)

	// The focus, and what a script has set, would not survive if the page was loaded again.
	b.evaluate(`window.same = true; document.querySelector(".dense a").focus()`)

	s.memory.set(failing("aws", "the API server refused it"), ready("azure"))
	g.Eventually(text, soon).Should(And(
		MatchRegexp(`(?s)infrastructure-aws.*the API server refused it.*infrastructure-azure`),
		ContainSubstring(notApplied),
	))
	g.Expect(b.evaluate(`window.same && document.activeElement.innerText`)).To(Equal("infrastructure-aws"))

	s.memory.set(ready("azure"))
	g.Eventually(text, soon).ShouldNot(ContainSubstring("infrastructure-aws"))

	banner := value(`(b => b.hidden ? "" : b.innerText)(document.getElementById("connection"))`)
	g.Expect(banner()).To(BeEmpty())
	s.memory.fail(errors.New("connection refused"))
	g.Eventually(banner, soon).Should(HavePrefix("The cluster cannot be read, trying again. You see the state of "))
	s.memory.fail(nil)
	g.Eventually(banner, soon).Should(BeEmpty())

	s.stop()
	g.Eventually(banner, soon).Should(HavePrefix("Connection lost, trying again."))

	s.memory.set(ready("gcp"))
	s.start(t)
	g.Eventually(text, soon).Should(ContainSubstring("infrastructure-gcp"))
	g.Eventually(banner, soon).Should(BeEmpty())
	g.Expect(b.evaluate(`window.same`)).To(BeTrue())
	b.forget() // failed requests while there was no server
}

// TestBrowserKeyboard checks that the page can be used without a mouse.
func TestBrowserKeyboard(t *testing.T) {
	g := NewWithT(t)
	b := open(t, browser(t), newSite(t), "", desktop)

	focused := func() any { return b.evaluate(`document.activeElement.innerText`) }

	b.run(chromedp.KeyEvent(kb.Tab))
	g.Expect(focused()).To(Equal("Skip to content"))
	b.run(chromedp.KeyEvent(kb.Enter))
	g.Expect(b.evaluate(`document.activeElement.id`)).To(Equal("main"))

	for _, want := range []string{"Copy", "infrastructure-aws"} {
		b.run(chromedp.KeyEvent(kb.Tab))
		g.Expect(focused()).To(Equal(want))
		g.Expect(b.evaluate(`getComputedStyle(document.activeElement).outlineStyle`)).To(Equal("solid"))
	}

	b.run(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#history"))
	g.Expect(b.evaluate(`document.querySelector("h1").innerText`)).To(Equal("infrastructure-aws"))
}

// axeVersion is the release of axe-core that pages are checked with, and axeDigest that of its package.
const (
	axeVersion = "4.14.1"
	axeDigest  = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axeViolations returns the rules that a page violates with the elements, as JSON.
const axeViolations = `axe.run().then(result => JSON.stringify(
  result.violations.map(v => v.id + ": " + v.nodes.map(n => n.target + " " + n.failureSummary).join("; "))))`

// fetchAxe returns the source of axe-core, which npm fetches.
func fetchAxe(ctx context.Context, folder string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	pack := exec.CommandContext(ctx, "npm", "pack", "--json", "axe-core@"+axeVersion)
	pack.Dir = folder

	out, err := pack.Output()
	if err != nil {
		return "", fmt.Errorf("npm pack axe-core: %w", err)
	}

	var packed []struct{ Filename, Integrity string }
	if err := json.Unmarshal(out, &packed); err != nil || len(packed) != 1 {
		return "", fmt.Errorf("npm pack axe-core printed %q", out)
	}

	if packed[0].Integrity != axeDigest {
		return "", errors.New("axe-core has another digest than " + axeDigest)
	}

	source, err := exec.CommandContext(ctx, "tar", "-xzOf", filepath.Join(folder, packed[0].Filename),
		"package/axe.min.js").Output()

	return string(source), err
}

// TestBrowserCompare checks that a comparison follows the cluster, and can be chosen with the keyboard.
func TestBrowserCompare(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	b := open(t, browser(t), s, awsPage, desktop)

	b.run(chromedp.Focus(`.timeline a[href$="from=6&to=7"]`), chromedp.KeyEvent(kb.Enter),
		chromedp.WaitVisible("#changes"))
	g.Expect(b.evaluate(`document.querySelector("#changes del").innerText`)).To(ContainSubstring("--from=revision 6"))

	b.evaluate(`window.same = true`)
	s.memory.withhold("The contents are hidden")
	g.Eventually(func() any { return b.evaluate(`document.getElementById("changes").innerText`) }, soon).Should(
		ContainSubstring("The contents are hidden"))
	g.Expect(b.evaluate(`window.same`)).To(BeTrue())

	// The first choice of what is compared is the newest revision.
	b.run(chromedp.Focus(`[name="from"]`), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.Tab+kb.Tab+kb.Enter),
		chromedp.WaitReady(`[name="from"] option[value=""][selected]`, chromedp.ByQuery))
	g.Expect(b.evaluate(`document.querySelector("h1 + .command code").innerText`)).To(
		HavePrefix("capstan diff --revision 7 infrastructure-aws"))
}
