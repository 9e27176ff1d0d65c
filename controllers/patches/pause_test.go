package patches_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/patches"
)

// manager returns a manifest with a Deployment that has the given lines of metadata and spec.
func manager(metadata, spec string) string {
	return "---\n# Source: a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}   # as it was\n" +
		"---\n# Source: b.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: manager\n" + metadata +
		"spec:\n" + spec + "  paused: false\n"
}

func TestPausing(t *testing.T) {
	var (
		three = manager("", "  replicas: 3\n")
		unset = manager("", "")
		none  = manager("", "  replicas: 0\n")
		noted = func(replicas string) string {
			return "  annotations:\n    capstan.dev/paused-replicas: '" + replicas + "'\n"
		}
		paused  = manager(noted("3"), "  replicas: 0\n")
		pausedN = manager(noted("0"), "  replicas: 0\n")
		forged  = manager(noted("7"), "  replicas: 3\n")
	)

	for name, test := range map[string]struct {
		manifest string
		paused   bool
		want     string
	}{
		"pause":                              {three, true, paused},
		"pause what is paused":               {paused, true, paused},
		"pause without replicas":             {none, true, pausedN},
		"pause what only has the annotation": {forged, true, paused},
		"resume":                             {paused, false, three},
		"resume what runs":                   {three, false, three},
		"resume what has the API's default":  {unset, false, unset},
		"resume without replicas":            {pausedN, false, none},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			rendered, err := patches.Pausing{Paused: test.paused}.Render([]byte(test.manifest))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(rendered)).To(Equal(test.want))
		})
	}

	t.Run("pause what has the API's default, and resume it", func(t *testing.T) {
		g := NewWithT(t)

		rendered, err := patches.Pausing{Paused: true}.Render([]byte(unset))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(rendered)).To(ContainSubstring("replicas: 0"))

		rendered, err = patches.Pausing{}.Render(rendered)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(rendered)).To(ContainSubstring("replicas: 1"))
	})
}

func TestPausingHasTwoDigests(t *testing.T) {
	g := NewWithT(t)
	g.Expect(patches.Pausing{Paused: true}.Digest()).NotTo(Equal(patches.Pausing{}.Digest()))
}
