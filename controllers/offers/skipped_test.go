package offers

import (
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	. "github.com/onsi/gomega"
)

func TestSkippedMinors(t *testing.T) {
	const all = "v1.24.0 v1.28.0 v1.27.1 v1.26.4 v1.27.0 v1.26.0-rc.0 v1.25.3 v2.1.0 v2.0.0"

	for name, c := range map[string]struct{ from, to, want string }{
		"three minor versions":        {"v1.25.1", "v1.28.0", "v1.26 v1.27"},
		"none between":                {"v1.25.1", "v1.26.4", ""},
		"a patch":                     {"v1.25.1", "v1.25.3", ""},
		"a downgrade":                 {"v1.28.0", "v1.25.3", ""},
		"a major version":             {"v1.27.0", "v2.1.0", "v1.28 v2.0"},
		"to a pre-release":            {"v1.25.1", "v1.27.0-rc.1", "v1.26"},
		"nothing installed":           {"", "v1.28.0", ""},
		"a version that is no semver": {"main", "v1.28.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var minors []*semver.Version
			for _, version := range strings.Fields(all) {
				minors = append(minors, semver.MustParse(version))
			}

			NewWithT(t).Expect(strings.Join(SkippedMinors(c.from, c.to, minors), " ")).To(Equal(c.want))
		})
	}
}

func TestSkipsMessage(t *testing.T) {
	g := NewWithT(t)
	g.Expect(SkipsMessage("v1.26.0", nil)).To(BeEmpty())
	g.Expect(SkipsMessage("v1.28.1", []string{"v1.26", "v1.27"})).To(Equal("v1.28.1 skips v1.26, v1.27: a provider " +
		"may need each minor version; see its release notes, or upgrade to one after the other"))
	g.Expect(SkipsMessage("v1.9.0", strings.Fields("v1.1 v1.2 v1.3 v1.4 v1.5 v1.6"))).To(
		ContainSubstring("skips v1.1, v1.2, v1.3, v1.4, v1.5 and 1 more: a provider "))
}
