package charts

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/mirror/certmanager"
)

func TestCertManager(t *testing.T) {
	const public = "oci://quay.io/jetstack/charts/cert-manager"

	crds := map[string]any{"enabled": true}
	mirrored := certmanager.ImageValues("r.example.com/m")
	mirrored["crds"] = crds

	for name, c := range map[string]struct {
		values string
		chart  string
		want   map[string]any
	}{
		"public": {chart: public, want: map[string]any{"crds": crds}},
		"from a mirror": {
			values: "flags: {chart-repository: 'oci://r.example.com/m/charts', image-registry: r.example.com/m}",
			chart:  "oci://r.example.com/m/charts/cert-manager", want: mirrored,
		},
		"chosen": {
			values: `
flags: {chart-repository: "oci://r.example.com/m/charts"}
certManager: {chart: "oci://example.com/cm", values: {crds: {enabled: false}, replicaCount: 2}}`,
			chart: "oci://example.com/cm",
			want:  map[string]any{"crds": map[string]any{"enabled": false}, "replicaCount": 2.0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			provider := renderCertManager(t, c.values)
			g.Expect(provider.Namespace).To(Equal("cert-manager"))
			g.Expect(provider.Name).To(Equal("cert-manager"))
			g.Expect(provider.Spec.Version).To(Equal(certmanager.Version), "what capstan init installs")
			g.Expect(provider.Spec.FetchConfig.OCI).To(Equal(c.chart))

			var values map[string]any
			g.Expect(json.Unmarshal(provider.Spec.Values.Raw, &values)).To(Succeed())
			g.Expect(values).To(Equal(c.want))
		})
	}
}

// renderCertManager renders the resource of cert-manager, with values in YAML.
func renderCertManager(t *testing.T, given string) *v1alpha2.AddonProvider {
	t.Helper()

	g := NewWithT(t)
	capstan, err := Load("capstan")
	g.Expect(err).NotTo(HaveOccurred())

	values := map[string]any{}
	g.Expect(yaml.Unmarshal([]byte(given), &values)).To(Succeed())

	rendered, err := Render(capstan, chartutil.CoalesceTables(values, map[string]any{
		"createNamespaces": false, "certManager": map[string]any{"enabled": true},
	}), func(template string) bool { return template == "providers.yaml" })
	g.Expect(err).NotTo(HaveOccurred())

	provider := &v1alpha2.AddonProvider{}
	g.Expect(yaml.UnmarshalStrict(rendered, provider)).To(Succeed(), string(rendered))

	return provider
}
