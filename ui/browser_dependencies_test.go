package ui_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"
)

// TestBrowserDependencies checks that the list follows the cluster and what is in use, and is reached with the
// keyboard.
func TestBrowserDependencies(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, withUsages("a"))
	b := open(t, browser(t), s, "", desktop)
	g.Eventually(s.feed.Watched, 10*time.Second).Should(BeTrue())

	b.run(chromedp.Focus(`.pages a[href$="dependencies"]`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#clusters"))
	g.Eventually(s.feed.Watched, 10*time.Second).Should(BeTrue())

	text := func(selector string) func() any {
		return func() any { return b.evaluate(`document.querySelector("` + selector + `").textContent`) }
	}
	g.Eventually(text("#clusters"), 10*time.Second).Should(ContainSubstring("of Cluster default/production"))
	g.Eventually(text("#holders"), 10*time.Second).Should(
		ContainSubstring("default/production has objects of infrastructure-aws"))

	b.evaluate(`window.same = true; document.querySelector(".nodes a").focus()`)
	s.cluster.set(mapped("the API server refused it")...)
	s.feed.Changed("InfrastructureProvider/capa-system/gcp")
	g.Eventually(text("#clusters"), 10*time.Second).Should(And(
		ContainSubstring("infrastructure-gcp"), ContainSubstring("ipam-in-cluster"), ContainSubstring("Waiting or failing")))
	g.Expect(b.evaluate(`window.same && document.activeElement.tagName`)).To(Equal("A"))

	b.run(chromedp.Focus(`.nodes a[href$="/aws"]`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#removal"))
	g.Eventually(text("#removal"), 10*time.Second).Should(And(
		ContainSubstring("awsclusters.infrastructure.cluster.x-k8s.io"), ContainSubstring("default/production")))
}
