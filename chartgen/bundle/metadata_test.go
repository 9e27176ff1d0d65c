package bundle

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
)

// TestMetadataLikeClusterctl: metadata.yaml is refused exactly if clusterctl refuses it.
func TestMetadataLikeClusterctl(t *testing.T) {
	const (
		apiVersion = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n"
		kind       = "kind: Metadata\n"
		series     = "releaseSeries:\n- {major: 1, minor: 0, contract: v1beta2}\n"
	)

	for name, text := range map[string]string{
		"complete":                 apiVersion + kind + series,
		"no kind":                  apiVersion + series,
		"no apiVersion":            kind + series,
		"neither":                  series,
		"an older version":         "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha2\n" + kind + series,
		"a newer version":          "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha4\n" + kind + series,
		"a newer version, no kind": "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha4\n" + series,
		"another group":            "apiVersion: cluster.x-k8s.io/v1alpha3\n" + kind + series,
		"another kind":             apiVersion + "kind: Provider\n" + series,
		"an unknown kind":          apiVersion + "kind: Unknown\n" + series,
		"no series":                apiVersion + kind,
		"an unknown field":         apiVersion + kind + series + "more: true\n",
		"fields in other case":     apiVersion + kind + "ReleaseSeries:\n- {Major: 1, Minor: 0, Contract: v1beta2}\n",
		"a field twice":            apiVersion + kind + series + series,
		"a series twice":           apiVersion + kind + series + "- {major: 1, minor: 0, contract: v1beta1}\n",
		"a negative number":        apiVersion + kind + "releaseSeries:\n- {major: -1, minor: 0, contract: v1beta2}\n",
		"a fraction":               apiVersion + kind + "releaseSeries:\n- {major: 1.5, minor: 0, contract: v1beta2}\n",
		"a number in quotes":       apiVersion + kind + "releaseSeries:\n- {major: '1', minor: 0, contract: v1beta2}\n",
		"a large number":           apiVersion + kind + "releaseSeries:\n- {major: 5000000000, minor: 0, contract: a}\n",
		"a contract of a number":   apiVersion + kind + "releaseSeries:\n- {major: 1, minor: 0, contract: 1}\n",
		"a list":                   apiVersion + kind + "releaseSeries: {major: 1, minor: 0, contract: v1beta2}\n",
		"a second document":        apiVersion + kind + series + "---\nkind: Other\n",
		"no YAML":                  "a: b: c\n",
		"a comment":                "# comment\n",
		"nothing":                  "",
		"a byte order mark":        "\ufeff" + apiVersion + kind + series,
		"JSON": `{"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Metadata", ` +
			`"releaseSeries": [{"major": 1, "minor": 0, "contract": "v1beta2"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want := clusterctlMetadata(t, text)
			_, err := ParseMetadata([]byte(text))

			if want != nil {
				g.Expect(err).To(HaveOccurred(), "clusterctl: %v", want)
				g.Expect(err).To(BeAssignableToTypeOf(&InvalidError{}))

				return
			}

			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

// clusterctlMetadata returns the error of clusterctl's library for the content of metadata.yaml.
func clusterctlMetadata(t *testing.T, text string) error {
	t.Helper()
	g := NewWithT(t)

	const version = "v1.0.0"

	files := repository.NewMemoryRepository().WithPaths("root", "components.yaml").WithDefaultVersion(version).
		WithFile(version, MetadataFile, []byte(text))

	configuration, err := config.New(t.Context(), "", config.InjectReader(config.NewMemoryReader()))
	g.Expect(err).NotTo(HaveOccurred())

	provider := config.NewProvider("odd", "https://example.com/none", clusterctlv1.InfrastructureProviderType)
	client, err := repository.New(t.Context(), provider, configuration, repository.InjectRepository(files))
	g.Expect(err).NotTo(HaveOccurred())

	_, err = client.Metadata(version).Get(t.Context())

	return err
}
