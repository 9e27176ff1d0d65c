package lint_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/contract/lint"
	"github.com/capstan-project/capstan/test/testproviders"
)

// trueErrors are the errors of real providers, by version. Each one was verified manually.
var trueErrors = map[string][]string{
	// K0sControlPlane v1beta2 kept v1beta1's spec.machineTemplate.infrastructureRef. With contract
	// v1beta2 Cluster API's topology controller sets spec.machineTemplate.spec.infrastructureRef,
	// so a ClusterClass with machineInfrastructure cannot use it.
	"control-plane-k0smotron/v2.1.0": {"control-plane/machine-template"},
}

// TestRealProviders looks for false positives. PROVIDERS is a folder of providers in the layout of
// a local repository of clusterctl.
func TestRealProviders(t *testing.T) {
	for _, b := range realBundles(t) {
		name := b.Provider.Label + "/" + b.Version
		t.Run(name, func(t *testing.T) {
			var found []string

			for _, f := range lint.Bundle(b, nil) {
				t.Logf("%-7s %s %s %s %s: %s", f.Level, f.File, f.Rule, f.Kind, f.Object, f.Message)

				if f.Level == contract.Error {
					found = append(found, f.Rule)
				}
			}

			NewWithT(t).Expect(found).To(Equal(trueErrors[name]))
		})
	}
}

func realBundles(t testing.TB) []*bundle.Bundle {
	versions, err := filepath.Glob(filepath.Join(testproviders.Folder(t), "*", "*", bundle.MetadataFile))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(versions).NotTo(BeEmpty())

	var bundles []*bundle.Bundle

	for _, metadata := range versions {
		folder := filepath.Dir(metadata)
		directory, err := source.NewDirectory(filepath.Dir(folder))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		version := filepath.Base(folder)
		published, err := directory.Fetch(t.Context(), source.Version{Name: version, ID: version})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		bundles = append(bundles, published.Bundle)
	}

	return bundles
}

// BenchmarkBundle measures only the rules, on components that are already parsed.
func BenchmarkBundle(b *testing.B) {
	for _, provider := range realBundles(b) {
		components, err := bundle.ParseComponents(provider.Components)
		NewWithT(b).Expect(err).NotTo(HaveOccurred())
		b.Run(provider.Provider.Label+"/"+provider.Version, func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				lint.Bundle(provider, components)
			}
		})
	}
}
