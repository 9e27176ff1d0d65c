package e2e

import (
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// variableValue is a value of a variable, which no page may contain.
const variableValue = "v4lu3-of-a-variable"

// pageURL matches the URL that capstan ui prints.
var pageURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+/[A-Z0-9]{26}/`)

// statusPage is a running capstan ui.
type statusPage struct{ url string }

// openStatusPage starts capstan ui, and ends it after the test.
func openStatusPage(ctx context.Context, cli commandLine) statusPage {
	GinkgoHelper()

	out := gbytes.NewBuffer()
	program := cli.command(context.WithoutCancel(ctx), "ui")
	program.Stdout, program.Stderr = out, out
	Expect(program.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(program.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(program.Wait()).To(Succeed(), "an interrupt ends it normally")
		Expect(string(out.Contents())).NotTo(ContainSubstring("rror"), "it logs nothing")
	})
	Eventually(out).Should(gbytes.Say("Press Ctrl-C"))

	return statusPage{url: pageURL.FindString(string(out.Contents()))}
}

// read returns a page.
func (s statusPage) read(ctx context.Context, path string) string {
	GinkgoHelper()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())

	defer response.Body.Close()

	Expect(response.StatusCode).To(Equal(http.StatusOK))
	data, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())

	return string(data)
}

// providerPath returns the path of the page of a provider.
func providerPath(p v1alpha2.Provider) string {
	return "providers/" + strings.Join([]string{string(p.ProviderType()), p.GetNamespace(), p.GetName()}, "/")
}

// comparePath returns the path of the comparison of a provider's first two revisions.
func comparePath(p v1alpha2.Provider) string { return providerPath(p) + "/compare?from=1&to=2" }

// storedInBrowser is how much a page has stored.
const storedInBrowser = `localStorage.length + sessionStorage.length + document.cookie.length`

// The pictures of the documentation are those of this scenario.
var _ = Describe("The status page", Ordered, everyKubernetes, func() {
	var (
		w           *world
		cli         commandLine
		docker, aws v1alpha2.Provider
	)

	BeforeAll(func(ctx SpecContext) {
		w = readyWorld(ctx)
		cli = newCommandLine(w)

		for _, label := range []string{"bootstrap-kubeadm", "control-plane-kubeadm"} {
			p := w.install(ctx, samples, harness.Wanted{Label: label})
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		}

		docker = w.install(ctx, samples, harness.Wanted{
			Label: "infrastructure-docker", Version: "v1.0.0",
			Variables: map[string]string{"CAPD_DOCKER_HOST": variableValue},
		})
		Eventually(w.read(ctx, docker)).Should(beReady("v1.0.0"))

		newer, err := harness.Load(ctx, samples, harness.Wanted{Label: "infrastructure-docker", Version: "v1.1.0"})
		Expect(err).NotTo(HaveOccurred())
		Expect(newer.Prepare(ctx, w.client)).To(Succeed())

		aws = w.install(ctx, samples, harness.Wanted{Label: "infrastructure-aws"})
		Eventually(w.read(ctx, aws)).Should(notBeReady(v1alpha2.MissingVariablesReason, "AWS_B64ENCODED_CREDENTIALS"))
	})

	It("shows the providers during an upgrade and a failure, and writes nothing", func(ctx SpecContext) {
		writes := cli.writes()
		page := openStatusPage(ctx, cli)
		Expect(page.read(ctx, "")).To(And(
			ContainSubstring("<code>capstan status</code>"),
			ContainSubstring(providerPath(docker)),
		))

		update(ctx, w, docker, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, docker)).Should(beReady("v1.1.0"))
		Eventually(page.read).WithArguments(ctx, providerPath(docker)).Should(And(
			ContainSubstring("Revision 2"),
			ContainSubstring("by capstan: version"),
			ContainSubstring("registry.example.com/capi/capd-manager:v1.1.0"),
			ContainSubstring("dockerclusters.infrastructure.cluster.x-k8s.io"),
			ContainSubstring("CAPD_DOCKER_HOST"), Not(ContainSubstring(variableValue)),
			ContainSubstring("capstan history infrastructure-docker"),
			Not(ContainSubstring("Not known")),
		))

		By("comparing revisions")
		Expect(page.read(ctx, comparePath(docker))).To(And(
			ContainSubstring("capd-manager:v1.0.0</del>"), ContainSubstring("capd-manager:v1.1.0</ins>"),
			ContainSubstring(`capd-load-balancer <span class="badge bad">deleted`),
			ContainSubstring("&lt;masked CAPD_DOCKER_HOST&gt;"), Not(ContainSubstring(variableValue)),
		))
		Eventually(page.read).WithArguments(ctx, providerPath(docker)+"/compare").Should(
			ContainSubstring("There are no differences."))
		Expect(cli.succeed(ctx, "diff", "docker", "--baseline", "1")).To(
			ContainSubstring("capd-load-balancer would be deleted:"))

		update(ctx, w, docker, func(p v1alpha2.Provider) { p.GetSpec().Version = "v9.9.9" })
		Eventually(page.read).WithArguments(ctx, "").Should(ContainSubstring("v1.1.0 runs; v9.9.9 is not applied"))
		Expect(page.read(ctx, providerPath(docker))).To(ContainSubstring("wants v9.9.9"))
		Expect(cli.writes()).To(Equal(writes))
	})

	It("follows changes in a browser, in which it stores nothing", func(ctx SpecContext) {
		page := openStatusPage(ctx, cli)
		tab := openTab(ctx, page.url)

		for _, scheme := range []string{"light", "dark"} {
			tab.show(page.url, scheme, 1080)
			Eventually(tab.text).WithArguments("#rows").Should(And(
				ContainSubstring("v9.9.9 is not applied"), ContainSubstring("AWS_B64ENCODED_CREDENTIALS")))
			tab.picture("ui-overview-" + scheme)
		}

		tab.show(page.url+comparePath(docker), "light", 800)
		tab.picture("ui-compare")

		tab.show(page.url+providerPath(docker), "light", 1400)
		tab.picture("ui-provider")
		tab.evaluate(`window.same = true`)

		update(ctx, w, docker, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(tab.text).WithArguments("#summary").Should(
			And(ContainSubstring("v1.1.0 is healthy"), Not(ContainSubstring("v9.9.9"))))
		Expect(tab.evaluate(`window.same`)).To(BeTrue(), "the page was not loaded again")
		Expect(tab.evaluate(storedInBrowser)).To(BeZero())
		tab.expectClean()
	})
})
