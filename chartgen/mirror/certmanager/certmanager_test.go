package certmanager

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/mirror"
	"github.com/capstan-project/capstan/chartgen/oci"
)

func TestParseChart(t *testing.T) {
	for given, want := range map[string]string{
		"v1.21.2": "oci://quay.io/jetstack/charts/cert-manager:v1.21.2",
		"oci://example.com/a/charts/cert-manager:v1.21.2":        "oci://example.com/a/charts/cert-manager:v1.21.2",
		"oci://registry.example.com/charts/cert-manager:v1.21.2": "oci://registry.example.com/charts/cert-manager:v1.21.2",
	} {
		chart, err := ParseChart(given)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), given)
		NewWithT(t).Expect(chart.String()).To(Equal(want))
	}

	for _, given := range []string{
		"oci://registry.example.com/charts/cert-manager",
		"oci://registry.example.com/cert-manager:v1.21.2",
		"oci://registry.example.com/my-charts/cert-manager:v1.21.2",
	} {
		_, err := ParseChart(given)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("cannot be cert-manager's chart")), given)
	}
}

func TestImages(t *testing.T) {
	chart, err := ParseChart("v1.21.2")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(Images(chart)).To(HaveExactElements(
		"quay.io/jetstack/cert-manager-controller:v1.21.2",
		"quay.io/jetstack/cert-manager-acmesolver:v1.21.2",
		"quay.io/jetstack/cert-manager-cainjector:v1.21.2",
		"quay.io/jetstack/cert-manager-startupapicheck:v1.21.2",
		"quay.io/jetstack/cert-manager-webhook:v1.21.2",
	))
}

func TestInstallCommand(t *testing.T) {
	g := NewWithT(t)
	base, err := oci.ParseRepository("oci://registry.example.com/mirror")
	g.Expect(err).NotTo(HaveOccurred())

	target := &mirror.Registry{Base: base}
	webhook := &mirror.Item{
		Name:       "quay.io/jetstack/cert-manager-webhook:v1.21.2",
		Repository: "jetstack/cert-manager-webhook",
		Tag:        "v1.21.2",
	}
	chart := &mirror.Item{Name: "charts/cert-manager:v1.21.2", Repository: "charts/cert-manager", Tag: "v1.21.2"}

	g.Expect(InstallCommand(target, []*mirror.Item{webhook})).To(BeEmpty())
	g.Expect(InstallCommand(target, []*mirror.Item{chart, webhook})).To(Equal(
		"helm install cert-manager oci://registry.example.com/mirror/charts/cert-manager --version v1.21.2 " +
			"-n cert-manager --create-namespace --set crds.enabled=true" +
			" \\\n    --set webhook.image.repository=registry.example.com/mirror/jetstack/cert-manager-webhook"))
}
