package charts

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// TestFiles: what is written for a type of provider can be built and conforms to the contracts.
func TestScaffold(t *testing.T) {
	for _, providerType := range v1alpha2.ProviderTypes() {
		t.Run(string(providerType), func(t *testing.T) {
			if providerType == v1alpha2.CoreProviderType {
				t.Skip("there is only one core provider")
			}

			g := NewWithT(t)
			files, err := scaffold(newProvider{
				Type: providerType, Name: "my-own", Version: "v1.2.0", Image: "registry.example.com/my-own:v1.2.0",
			})
			g.Expect(err).NotTo(HaveOccurred())

			b := &bundle.Bundle{Provider: source.Provider(providerType, "my-own"), Version: "v1.2.0"}

			for _, f := range files {
				switch f.Name {
				case providerType.ComponentsFile():
					b.Components = f.Data
				case "metadata.yaml":
					b.Metadata = f.Data
				default:
					b.Templates = append(b.Templates, bundle.File{Name: f.Name, Data: f.Data})
				}
			}

			g.Expect(lint.Bundle(b, nil)).To(BeEmpty())

			_, err = chartgen.Build(b)
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestScaffoldInvalidVersion(t *testing.T) {
	_, err := scaffold(newProvider{Type: v1alpha2.AddonProviderType, Name: "x", Version: "v1"})
	NewWithT(t).Expect(err).To(MatchError("version v1: invalid semantic version"))
}
