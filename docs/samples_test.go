package docs_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestSamplesAreOnPages: the samples for Flux and Argo CD are what the pages show.
func TestSamplesAreOnPages(t *testing.T) {
	for file, page := range map[string]string{
		"flux/operator.yaml": "docs/install.md", "flux/providers.yaml": "docs/gitops.md",
		"argocd/operator.yaml": "docs/install.md", "argocd/providers.yaml": "docs/gitops.md",
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)

			sample, err := os.ReadFile("../config/samples/" + file)
			g.Expect(err).NotTo(HaveOccurred())

			var shown []string

			for _, b := range blocks(t, "yaml") {
				if b.page == page && strings.HasSuffix(strings.TrimSpace(string(sample)), strings.TrimSpace(b.text)) {
					shown = append(shown, b.text)
				}
			}

			g.Expect(shown).To(HaveLen(1))
		})
	}
}

// TestRenovateFindsVersions: the sample finds the version of a provider, and where that is released.
func TestRenovateFindsVersions(t *testing.T) {
	g := NewWithT(t)

	content, err := os.ReadFile("../config/samples/renovate/renovate.json")
	g.Expect(err).NotTo(HaveOccurred())

	var renovate struct {
		CustomManagers []struct{ ManagerFilePatterns, MatchStrings []string }
	}
	g.Expect(json.Unmarshal(content, &renovate)).To(Succeed())
	g.Expect(renovate.CustomManagers).To(HaveLen(1))

	manager := renovate.CustomManagers[0]
	g.Expect("clusters/production/providers/aws.yaml").To(MatchRegexp(strings.Trim(manager.ManagerFilePatterns[0], "/")))

	version := regexp.MustCompile(manager.MatchStrings[0])
	found := version.FindStringSubmatch(
		"spec:\n  # renovate: depName=kubernetes-sigs/cluster-api-provider-aws\n  version: v2.11.1\n")
	g.Expect(found).To(HaveLen(3))
	g.Expect(found[version.SubexpIndex("depName")]).To(Equal("kubernetes-sigs/cluster-api-provider-aws"))
	g.Expect(found[version.SubexpIndex("currentValue")]).To(Equal("v2.11.1"))
}
