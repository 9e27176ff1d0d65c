package values_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/values"
)

// TestImages compares with clusterctl itself: the same overrides result in the same images.
func TestImages(t *testing.T) {
	chart := buildChart(t, managerComponents)
	published := map[string]string{
		"manager": "registry.k8s.io/tiny/tiny-controller:v1.0.0",
		"proxy":   "registry.k8s.io/tiny/proxy:v1.0.0",
		"prepare": "registry.k8s.io/tiny/prepare:v1.0.0",
	}

	for name, overrides := range map[string]string{
		"none":             ``,
		"all":              `{all: {repository: mirror.example.com/capi}}`,
		"a trailing slash": `{all: {repository: mirror.example.com/capi/}}`,
		"all and the provider": `
all: {repository: a.example.com, tag: v2}
infrastructure-tiny: {repository: b.example.com/x}`,
		"all, the provider and an image": `
all: {repository: a.example.com}
infrastructure-tiny: {tag: v3}
infrastructure-tiny/tiny-controller: {name: other, tag: v4}`,
		"an image": `{infrastructure-tiny/proxy: {repository: a.example.com, name: other, tag: v2}}`,
		"other providers": `
infrastructure-aws: {tag: v2}
infrastructure-aws/tiny-controller: {tag: v3}
cert-manager: {repository: a}
cluster-api: {tag: v4}`,
		"an image that the provider does not have": `{infrastructure-tiny/absent: {tag: v2}}`,
		"an image with the name all":               `{infrastructure-tiny/all: {tag: v2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reader := config.NewMemoryReader()
			g.Expect(reader.Init(t.Context(), "")).To(Succeed())
			reader.Set("images", overrides)
			clusterctl, err := config.New(t.Context(), "", config.InjectReader(reader))
			g.Expect(err).NotTo(HaveOccurred())

			for _, in := range []values.Input{
				{Spec: &v1alpha2.ProviderSpec{}, Variables: map[string]string{"images": overrides}},
				{Spec: &v1alpha2.ProviderSpec{}, ImageOverrides: overrides},
			} {
				got, _, err := customized(t, chart, in)
				g.Expect(err).NotTo(HaveOccurred())

				for container, image := range published {
					want, err := clusterctl.ImageMeta().AlterImage("infrastructure-tiny", image)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(containerNamed(t, got["tiny-controller-manager"], container).Image).To(Equal(want))
				}
			}
		})
	}
}

// TestImageOverridesOfProvider checks that the provider's overrides replace the operator's key by
// key.
func TestImageOverridesOfProvider(t *testing.T) {
	const operators = `
all: {repository: mirror.example.com}
infrastructure-tiny: {repository: tiny.example.com, tag: v2}`

	chart := buildChart(t, managerComponents)

	for own, want := range map[string]string{
		``:                                 "tiny.example.com/tiny-controller:v2",
		`{infrastructure-tiny: {tag: v3}}`: "mirror.example.com/tiny-controller:v3",
		`{infrastructure-tiny: {}}`:        "mirror.example.com/tiny-controller:v1.0.0",
		`{all: {name: other}}`:             "tiny.example.com/other:v2",
		`{infrastructure-aws: {tag: v4}}`:  "tiny.example.com/tiny-controller:v2",
	} {
		g := NewWithT(t)
		got, _, err := customized(t, chart, values.Input{
			Spec:           &v1alpha2.ProviderSpec{},
			Variables:      map[string]string{"images": own},
			ImageOverrides: operators,
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(containerNamed(t, got["tiny-controller-manager"], "manager").Image).To(Equal(want), own)
	}
}

func TestImageOfContainer(t *testing.T) {
	g := NewWithT(t)
	got, _, err := customized(t, buildChart(t, managerComponents), values.Input{
		Spec:      specOf(t, `{deployment: {containers: [{name: manager, imageUrl: "own.example.com/a:v1"}]}}`),
		Variables: map[string]string{"images": `{all: {repository: mirror.example.com}}`},
	})
	g.Expect(err).NotTo(HaveOccurred())

	d := got["tiny-controller-manager"]
	g.Expect(containerNamed(t, d, "manager").Image).To(Equal("own.example.com/a:v1"), "it overrides image overrides")
	g.Expect(containerNamed(t, d, "proxy").Image).To(Equal("mirror.example.com/proxy:v1.0.0"))
}

func TestImagesError(t *testing.T) {
	chart := buildChart(t, managerComponents)

	const form, long = "each key needs a map", "a repository, name or tag is longer than 512"

	for name, c := range map[string]struct{ overrides, reason string }{
		"not YAML":        {`{all: [hunter2`, form},
		"not a map":       {`[hunter2]`, form},
		"an unknown key":  {`{all: {registry: hunter2}}`, form},
		"a string":        {`{all: hunter2}`, form},
		"many values":     {`{all: {tag: hunter2}, others: [` + strings.Repeat("{},", 100000) + `]}`, form},
		"a long tag":      {`{all: {tag: hunter2` + strings.Repeat("x", 512) + `}}`, long},
		"a long registry": {`{all: {repository: ` + strings.Repeat("x", 900<<10) + `}}`, long},
	} {
		t.Run(name, func(t *testing.T) {
			for source, in := range map[string]values.Input{
				"the provider's Secret":        {Variables: map[string]string{"images": c.overrides}},
				"the operator's configuration": {ImageOverrides: c.overrides},
			} {
				g := NewWithT(t)
				in.Spec = &v1alpha2.ProviderSpec{}
				_, _, err := customized(t, chart, in)

				g.Expect(err).To(HaveField("Reason", v1alpha2.ComponentsImageOverrideErrorReason))
				g.Expect(err).To(MatchError(HavePrefix(`key "images" of ` + source + ` cannot be read: ` + c.reason)))
				g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")))
			}
		})
	}
}
