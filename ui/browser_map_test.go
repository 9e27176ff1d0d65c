package ui_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"
)

// TestBrowserMap checks that the map is drawn, follows the cluster and what is in use, and is reached with the
// keyboard.
func TestBrowserMap(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t, withUsages("a"))
	b := open(t, browser(t), s, "", desktop)
	g.Eventually(s.feed.Watched, 10*time.Second).Should(BeTrue())

	b.run(chromedp.Focus(`.pages a[href$="map"]`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#clusters"))
	g.Eventually(s.feed.Watched, 10*time.Second).Should(BeTrue())

	text := func(selector string) func() any {
		return func() any { return b.evaluate(`document.querySelector("` + selector + `").textContent`) }
	}
	g.Eventually(text("svg"), 10*time.Second).Should(ContainSubstring("in use by 1 Cluster"))
	g.Eventually(text("#holders"), 10*time.Second).Should(
		ContainSubstring("default/production has objects of infrastructure-aws"))

	b.evaluate(`window.same = true; document.querySelector(".drawing").focus()`)
	s.cluster.set(mapped("the API server refused it")...)
	s.feed.Changed("InfrastructureProvider/capa-system/gcp")
	g.Eventually(text("svg"), 10*time.Second).Should(And(
		ContainSubstring("infrastructure-gcp"), ContainSubstring("ipam-in-cluster"), ContainSubstring("waits for others")))
	g.Expect(text("#clusters")()).To(ContainSubstring("Waiting or failing"))
	g.Expect(b.evaluate(`window.same && document.activeElement.className`)).To(Equal("scroll drawing"))

	// The boxes are painted, in the color of their state, and an arrow has a head.
	g.Expect(b.evaluate(`getComputedStyle(document.querySelector(".box.failing rect")).stroke`)).NotTo(Equal("none"))
	g.Expect(b.evaluate(`document.querySelector(".box rect").getBoundingClientRect().width`)).To(BeNumerically("==", 220))
	g.Expect(b.evaluate(`document.querySelectorAll(".head").length`)).To(BeNumerically("==", 6))

	b.run(chromedp.Focus(`.nodes a[href$="/aws"]`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#removal"))
	g.Eventually(text("#removal"), 10*time.Second).Should(And(
		ContainSubstring("awsclusters.infrastructure.cluster.x-k8s.io"), ContainSubstring("default/production")))
}
