package release_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// cert-manager's cainjector applies the certificate of each webhook, so it owns the webhooks in the list as well.
var _ = Describe("A webhook with a certificate of cert-manager", func() {
	const certificate = "b3RoZXI="

	It("goes if a version no longer has it, and the others keep theirs", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		engine := newEngine("one")
		name := namespace + "-injected"
		configuration := func(content string, webhooks ...string) string {
			text := "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: " +
				name + "\nwebhooks:\n"
			for _, webhook := range webhooks {
				text += fmt.Sprintf("- {name: %s.release.test, %s}\n", webhook, content)
			}

			return text
		}

		const content = "admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, " +
			"clientConfig: {url: https://127.0.0.1/validate}"

		mustApply(ctx, engine, specOf(namespace, "1.0.0", configuration(content, "first", "second")))

		inject := command(ctx, "kubectl", "apply", "--server-side", "--field-manager", "cert-manager-cainjector", "-f", "-")
		inject.Stdin = strings.NewReader(configuration("clientConfig: {caBundle: "+certificate+"}", "first", "second"))
		out, err := inject.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)

		read := func(path string) string {
			return run(ctx, "kubectl", "get", "validatingwebhookconfiguration", name, "-o", "jsonpath={"+path+"}")
		}
		uid := read(".metadata.uid")

		mustApply(ctx, engine, specOf(namespace, "1.1.0", configuration(content, "first")))
		Expect(read(".webhooks[*].name")).To(Equal("first.release.test"))
		Expect(read(".webhooks[*].clientConfig.caBundle")).To(Equal(certificate))
		Expect(read(".metadata.uid")).To(Equal(uid), "it was not replaced")
	})
})
