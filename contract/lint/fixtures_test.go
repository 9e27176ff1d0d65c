package lint_test

import (
	_ "embed" // for the files in testdata
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// The files of a provider that follows all rules, in both contracts. Each text that a test replaces
// occurs only once.
var (
	//go:embed testdata/metadata.yaml
	metadata string
	//go:embed testdata/components.yaml
	components string
	//go:embed testdata/kinds.yaml
	kinds string
	//go:embed testdata/cluster-template.yaml
	clusterTemplate string
	//go:embed testdata/clusterclass.yaml
	clusterClass string
)

// controlPlaneProvider returns a control plane provider that follows all rules.
func controlPlaneProvider() *bundle.Bundle {
	return &bundle.Bundle{
		Provider:   bundle.Provider{Type: "ControlPlaneProvider", Name: "example", Label: "control-plane-example"},
		Version:    "v1.2.3",
		Components: []byte(components),
		Metadata:   []byte(metadata),
	}
}

// infrastructureProvider returns an infrastructure provider with templates that follows all rules.
func infrastructureProvider() *bundle.Bundle {
	return &bundle.Bundle{
		Provider:   bundle.Provider{Type: "InfrastructureProvider", Name: "example", Label: "infrastructure-example"},
		Version:    "v1.2.3",
		Components: []byte(strings.ReplaceAll(components+"---\n"+kinds, "control-plane-example", "infrastructure-example")),
		Metadata:   []byte(metadata),
		Templates: []bundle.File{
			{Name: "cluster-template.yaml", Data: []byte(clusterTemplate)},
			{Name: "clusterclass-other.yaml", Data: []byte(strings.ReplaceAll(clusterClass, "quick", "other"))},
			{Name: "clusterclass-quick.yaml", Data: []byte(clusterClass)},
		},
	}
}

// ipamProvider returns an IPAM provider that follows all rules.
func ipamProvider() *bundle.Bundle {
	pool := kinds[strings.LastIndex(kinds, "---\n"):]

	return &bundle.Bundle{
		Provider:   bundle.Provider{Type: "IPAMProvider", Name: "example", Label: "ipam-example"},
		Version:    "v1.2.3",
		Components: []byte(strings.ReplaceAll(components+pool, "control-plane-example", "ipam-example")),
		Metadata:   []byte(metadata),
	}
}

// edit changes a file of a bundle.
type edit func(*testing.T, *bundle.Bundle)

// replace replaces pairs of old and new text in the components. The old text must exist.
func replace(oldnew ...string) edit {
	return func(t *testing.T, b *bundle.Bundle) {
		b.Components = replaced(t, b.Components, oldnew)
	}
}

// replaceMetadata replaces text in metadata.yaml.
func replaceMetadata(oldnew ...string) edit {
	return func(t *testing.T, b *bundle.Bundle) { b.Metadata = replaced(t, b.Metadata, oldnew) }
}

// replaceTemplate replaces text in a template.
func replaceTemplate(name string, oldnew ...string) edit {
	return func(t *testing.T, b *bundle.Bundle) {
		for i := range b.Templates {
			if b.Templates[i].Name == name {
				b.Templates[i].Data = replaced(t, b.Templates[i].Data, oldnew)
				return
			}
		}

		t.Fatalf("no template %s", name)
	}
}

func replaced(t *testing.T, data []byte, oldnew []string) []byte {
	t.Helper()

	text := string(data)
	for i := 0; i < len(oldnew); i += 2 {
		NewWithT(t).Expect(text).To(ContainSubstring(oldnew[i]))
		text = strings.ReplaceAll(text, oldnew[i], oldnew[i+1])
	}

	return []byte(text)
}

// with combines several edits.
func with(edits ...edit) edit {
	return func(t *testing.T, b *bundle.Bundle) {
		for _, e := range edits {
			e(t, b)
		}
	}
}

// scaleSubresource is the scale subresource of v1beta2.
const scaleSubresource = "      scale:\n        specReplicasPath: .spec.replicas\n" +
	"        statusReplicasPath: .status.replicas\n        labelSelectorPath: .status.selector\n"

// v1beta1 changes the contract to v1beta1.
var v1beta1 = replaceMetadata("v1beta2", "v1beta1")

// none changes nothing.
func none(*testing.T, *bundle.Bundle) {}
