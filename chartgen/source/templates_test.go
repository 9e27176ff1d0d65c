package source_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/test/fakesource"
)

// TestTemplatesOfEachSource: the same files are the same cluster templates, wherever they are published.
func TestTemplatesOfEachSource(t *testing.T) {
	const (
		object  = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n  name: ${CLUSTER_NAME}\n"
		version = "v1.0.0"
	)

	files := map[string]string{
		"metadata.yaml":               sampleFile(t, version, "metadata.yaml"),
		"cluster-template.yaml":       object,
		"cluster-template-alone.yaml": object + "spec:\n  paused: false\n${MORE_FIELDS}\n",
		"clusterclass-quick.yaml":     object + "---\n${MORE_OBJECTS}\n",
		"cluster-template-text.yaml":  "no YAML: [",
		"cluster-template.txt":        object,
	}
	for _, name := range []string{"infrastructure", "bootstrap"} {
		files[name+"-components.yaml"] = sampleFile(t, version, "infrastructure-components.yaml")
	}

	g := NewWithT(t)
	server, contents, folder := &fakesource.Server{}, map[string][]byte{}, t.TempDir()

	for name, text := range files {
		contents[name] = []byte(text)

		for _, label := range []string{"infrastructure-tiny", "bootstrap-tiny"} {
			path := filepath.Join(folder, label, version)
			g.Expect(os.MkdirAll(path, 0o700)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(path, name), []byte(text), 0o600)).To(Succeed())
		}
	}

	server.Publish("owner/tiny", version, contents)
	g.Expect(server.Start()).To(Succeed())
	t.Cleanup(func() { _ = server.Stop() })

	client, base := runRegistry(t)
	pushFiles(t, client, base+"tiny:"+version, files)

	for provider, want := range map[bundle.Provider][]string{
		source.Provider(v1alpha2.InfrastructureProviderType, "tiny"): {
			"cluster-template-alone.yaml", "cluster-template-text.yaml", "cluster-template.yaml", "clusterclass-quick.yaml",
		},
		source.Provider(v1alpha2.BootstrapProviderType, "tiny"): nil,
	} {
		site, err := source.NewWebsite(server.URL()+"/owner/tiny/releases", provider, nil)
		g.Expect(err).NotTo(HaveOccurred())
		directory, err := source.NewDirectory(filepath.Join(folder, provider.Label))
		g.Expect(err).NotTo(HaveOccurred())
		artifact, err := source.NewArtifact(base+"tiny", provider, source.OptionsForClient(client))
		g.Expect(err).NotTo(HaveOccurred())

		for name, from := range map[string]*source.Source{"website": site, "directory": directory, "artifact": artifact} {
			t.Run(provider.Label+" from a "+name, func(t *testing.T) {
				g := NewWithT(t)
				picked, err := from.Resolve(t.Context(), source.Request{Version: version})
				g.Expect(err).NotTo(HaveOccurred())
				b, err := from.Fetch(t.Context(), picked)
				g.Expect(err).NotTo(HaveOccurred())

				var names []string
				for _, template := range b.Templates {
					names = append(names, template.Name)
				}

				g.Expect(names).To(Equal(want))
			})
		}
	}
}
