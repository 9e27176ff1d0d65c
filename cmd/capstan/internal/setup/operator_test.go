package setup

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/charts"
	"github.com/capstan-project/capstan/controllers"
)

func newOperator(t *testing.T) *operator {
	t.Helper()

	chart, err := charts.Operator()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return &operator{chartRelease: chartRelease{name: "capstan", namespace: "capstan-system", chart: chart}}
}

// TestOperatorUsesTheMirror: the operator gets the flags and files of the command line, beside the values of the user.
func TestOperatorUsesTheMirror(t *testing.T) {
	g := NewWithT(t)
	op := newOperator(t)
	given := controllers.Config{
		Options:         controllers.Options{ImageRegistry: "registry.example.com/capi"},
		ChartRepository: "oci://registry.example.com/capi/charts",
		RegistryConfig:  write(t, "config.json", "{}"),
		RegistryCA:      write(t, "ca.crt", "certificate"),
	}

	g.Expect(op.setValues(map[string]any{
		"replicas": 1, "flags": map[string]any{"suspend": true},
		"volumes": []any{map[string]any{"name": "own"}},
	}, given)).To(Succeed())

	g.Expect(op.values).To(And(
		HaveKeyWithValue("replicas", 1),
		HaveKeyWithValue("image", HaveKeyWithValue("repository", "registry.example.com/capi/capstan-project/capstan")),
		HaveKeyWithValue("flags", Equal(map[string]any{
			"suspend":          true,
			"chart-repository": "oci://registry.example.com/capi/charts",
			"image-registry":   "registry.example.com/capi",
			"registry-config":  "/registry/config.json",
			"registry-ca":      "/registry/ca.crt",
		})),
		HaveKeyWithValue("volumes", HaveLen(2)), HaveKeyWithValue("volumeMounts", HaveLen(1)),
	))
	g.Expect(op.mounted).To(ConsistOf(HaveField("Data", Equal(map[string][]byte{
		"config.json": []byte("{}"), "ca.crt": []byte("certificate"),
	}))))

	config, err := op.settings()
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(config.ChartRepository).To(Equal(given.ChartRepository))
	g.Expect(config.Options.Suspended).To(BeTrue())
}

// TestOperatorConfiguration: the operator gets the providers and images of clusterctl's configuration, and none of
// the user's variables.
func TestOperatorConfiguration(t *testing.T) {
	g := NewWithT(t)
	op := newOperator(t)
	file := write(t, "clusterctl.yaml", "GITHUB_TOKEN: secret\noverridesFolder: /home/me/overrides\n"+
		"providers: [{name: own, type: InfrastructureProvider, url: 'https://example.com/latest/components.yaml'}]\n"+
		"images: {all: {repository: registry.example.com}}\n")

	g.Expect(op.readConfig(file)).To(Succeed())
	g.Expect(op.setValues(map[string]any{}, controllers.Config{})).To(Succeed())
	g.Expect(op.mounted).To(HaveLen(1))

	const want = "images:\n  all:\n    repository: registry.example.com\n" +
		"providers:\n- name: own\n  type: InfrastructureProvider\n  url: https://example.com/latest/components.yaml\n"

	configMap, isConfigMap := op.mounted[0].(*corev1.ConfigMap)
	g.Expect(isConfigMap).To(BeTrue())
	g.Expect(configMap.Data).To(Equal(map[string]string{"clusterctl.yaml": want}))

	config, err := op.settings()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Contents[config.Options.ConfigFile]).To(Equal(want))
}

// TestOperatorChart: the chart that a release installs has the release's version, and so has the operator.
func TestOperatorChart(t *testing.T) {
	g := NewWithT(t)
	op := newOperator(t)

	g.Expect(op.chart.CRDObjects()).To(HaveLen(7))
	g.Expect(op.chart.Validate()).To(Succeed())

	op.setVersion("v1.2.3")
	g.Expect(op.chart.Metadata).To(And(HaveField("Version", "1.2.3"), HaveField("AppVersion", "v1.2.3")))

	op.setVersion("dev")
	g.Expect(op.chart.Metadata.Version).To(Equal("1.2.3"), "a build without a version")
}
