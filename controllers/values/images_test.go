package values_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/values"
)

// TestImages compares with clusterctl itself: the same overrides give the same images.
func TestImages(t *testing.T) {
	chart := buildChart(t, managerComponents)
	published := map[string]string{
		"manager": "registry.k8s.io/tiny/tiny-controller:v1.0.0",
		"proxy":   "registry.k8s.io/tiny/proxy:v1.0.0",
		"prepare": "registry.k8s.io/tiny/prepare:v1.0.0",
	}

	for name, overrides := range map[string]string{
		"none":                                ``,
		"all":                                 `{all: {repository: mirror.example.com/capi}}`,
		"a slash too many":                    `{all: {repository: mirror.example.com/capi/}}`,
		"the provider's, in part over all":    `{all: {repository: a.example.com, tag: v2}, infrastructure-tiny: {repository: b.example.com/x}}`,
		"an image's, in part over both":       `{all: {repository: a.example.com}, infrastructure-tiny: {tag: v3}, infrastructure-tiny/tiny-controller: {name: other, tag: v4}}`,
		"an image's alone":                    `{infrastructure-tiny/proxy: {repository: a.example.com, name: other, tag: v2}}`,
		"those of others":                     `{infrastructure-aws: {tag: v2}, infrastructure-aws/tiny-controller: {tag: v3}, cert-manager: {repository: a}, cluster-api: {tag: v4}}`,
		"an image that the provider has not":  `{infrastructure-tiny/absent: {tag: v2}}`,
		"all, as the name of an image it has": `{infrastructure-tiny/all: {tag: v2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reader := config.NewMemoryReader()
			g.Expect(reader.Init(t.Context(), "")).To(Succeed())
			reader.Set("images", overrides)
			clusterctl, err := config.New(t.Context(), "", config.InjectReader(reader))
			g.Expect(err).NotTo(HaveOccurred())
			got, _, err := customized(t, chart, &v1alpha2.ProviderSpec{}, map[string]string{"images": overrides})
			g.Expect(err).NotTo(HaveOccurred())

			for container, image := range published {
				want, err := clusterctl.ImageMeta().AlterImage("infrastructure-tiny", image)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(containerNamed(t, got["tiny-controller-manager"], container).Image).To(Equal(want))
			}
		})
	}
}

func TestContainersImageWinsOverImages(t *testing.T) {
	g := NewWithT(t)
	got, _, err := customized(
		t,
		buildChart(t, managerComponents),
		specOf(t, `{deployment: {containers: [{name: manager, imageUrl: "own.example.com/a:v1"}]}}`),
		map[string]string{"images": `{all: {repository: mirror.example.com}}`},
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(containerNamed(t, got["tiny-controller-manager"], "manager").Image).To(Equal("own.example.com/a:v1"))
	g.Expect(containerNamed(t, got["tiny-controller-manager"], "proxy").Image).To(Equal("mirror.example.com/proxy:v1.0.0"))
}

func TestImagesThatCannotBeRead(t *testing.T) {
	for name, overrides := range map[string]string{
		"not YAML":         `{all: [hunter2`,
		"not a map":        `[hunter2]`,
		"a key that is no": `{all: {registry: hunter2}}`,
		"a word":           `{all: hunter2}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := customized(
				t,
				buildChart(t, managerComponents),
				&v1alpha2.ProviderSpec{},
				map[string]string{"images": overrides},
			)

			var wrong *values.ImagesError
			NewWithT(t).Expect(err).
				To(And(BeAssignableToTypeOf(wrong), MatchError(ContainSubstring(`key "images"`)), Not(MatchError(ContainSubstring("hunter2")))))
		})
	}
}
