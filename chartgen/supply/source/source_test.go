package source

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func offer(versions ...string) []Version {
	releases := make([]Version, 0, len(versions))
	for _, v := range versions {
		releases = append(releases, Version{Name: v})
	}

	sortNewestFirst(releases)

	return releases
}

func TestPick(t *testing.T) {
	all := []string{"v1.9.11", "v1.10.0", "v1.13.5", "v1.14.0", "v1.15.0-rc.1"}
	for name, test := range map[string]struct {
		offer                   []string
		version, pinned, picked string
		message                 string
	}{
		"exactly the version":                         {all, "v1.13.5", "", "v1.13.5", ""},
		"without its v":                               {all, "1.13.5", "", "v1.13.5", ""},
		"a pre-release by name":                       {all, "v1.15.0-rc.1", "", "v1.15.0-rc.1", ""},
		"the newest, which is no pre-release":         {all, "", "", "v1.14.0", ""},
		"a pre-release when there is nothing else":    {[]string{"v1.0.0-beta.1", "v1.0.0-beta.2"}, "", "", "v1.0.0-beta.2", ""},
		"the newest by number, not by letter":         {[]string{"v1.9.0", "v1.10.0"}, "", "", "v1.10.0", ""},
		"the newest in a range":                       {all, ">=1.9 <1.14", "", "v1.13.5", ""},
		"the newest patch":                            {all, "~1.13", "", "v1.13.5", ""},
		"the pinned one, while it fits":               {all, "~1", "v1.10.0", "v1.10.0", ""},
		"the pinned one, without a version":           {all, "", "v1.9.11", "v1.9.11", ""},
		"another, when the pinned one no longer fits": {all, "~1.13", "v1.10.0", "v1.13.5", ""},
		"another, when the pinned one is gone":        {all, "", "v1.8.0", "v1.14.0", ""},
		"a version that is not there":                 {all, "v9.9.9", "", "", "version v9.9.9 is not on offer; there is v1.15.0-rc.1, v1.14.0, v1.13.5, v1.10.0, v1.9.11"},
		"a range without a match":                     {all, "~2", "", "", "version ~2 is not on offer"},
		"neither version nor range":                   {all, "newest", "", "", `version "newest" is neither a semantic version such as v1.13.5 nor a range`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			picked, err := Pick(offer(test.offer...), test.version, test.pinned)
			if test.message != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.message)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(picked.Name).To(Equal(test.picked))
		})
	}
}

func TestADirectoryHoldsReleases(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "infrastructure-x")
	write := func(name, content string) {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	write("v1.9.0/metadata.yaml", "old")
	write("v1.10.0/infrastructure-components.yaml", "components")
	write("v1.10.0/metadata.yaml", "metadata")
	write("v1.10.0/cluster-template.yaml", "template")
	write("v1.10.0/clusterclass-quick.yaml", "class")
	write("v1.10.0/unrelated.yaml", "unrelated")
	write("docs/readme.md", "no version")

	d, err := NewDirectory(dir)
	g.Expect(err).NotTo(HaveOccurred())
	releases, err := d.Versions(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(releases).To(HaveExactElements(HaveField("Name", "v1.10.0"), HaveField("Name", "v1.9.0")))

	b, err := d.Fetch(t.Context(), releases[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.Provider).
		To(And(HaveField("Type", "InfrastructureProvider"), HaveField("Name", "x"), HaveField("Label", "infrastructure-x")))
	g.Expect(string(b.Components)).To(Equal("components"))
	g.Expect(string(b.Metadata)).To(Equal("metadata"))
	g.Expect(b.Templates).
		To(HaveExactElements(HaveField("Name", "cluster-template.yaml"), HaveField("Name", "clusterclass-quick.yaml")))

	_, err = d.Fetch(t.Context(), releases[1])
	g.Expect(err).To(MatchError(ContainSubstring("*-components.yaml: missing")))

	empty, err := NewDirectory(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = empty.Versions(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("holds no version folder")))
}
