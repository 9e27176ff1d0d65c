package chartgen_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
)

// TestAnnotations checks how a chart describes itself, by the names that other programs know.
func TestAnnotations(t *testing.T) {
	g := NewWithT(t)

	built, err := chartgen.Build(provider("tiny", `
apiVersion: v1
kind: Namespace
metadata: {name: tiny-system}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: issuer, namespace: tiny-system}
spec: {selfSigned: {}}
`))
	g.Expect(err).NotTo(HaveOccurred())

	annotations := built.Metadata.Annotations
	g.Expect(annotations["capstan.dev/content-id"]).To(MatchRegexp("^[0-9a-f]{64}$"))
	delete(annotations, "capstan.dev/content-id")

	g.Expect(annotations).To(Equal(map[string]string{
		"capstan.dev/provider-name":       "tiny",
		"capstan.dev/provider-type":       "InfrastructureProvider",
		"capstan.dev/contract":            "v1beta2",
		"capstan.dev/source":              "test",
		"capstan.dev/chartgen-version":    chartgen.Version,
		"capstan.dev/default-namespace":   "tiny-system",
		"capstan.dev/required-kinds":      "Issuer.v1.cert-manager.io",
		"capstan.dev/conversion-webhooks": "0",
	}))
}
