package tools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// Otherwise nearly every package of Kubernetes is compiled twice.
func TestToolsAreCompiledWithTheVersionsOfTheProject(t *testing.T) {
	g := NewWithT(t)

	set, err := Find()
	g.Expect(err).NotTo(HaveOccurred())

	// versions returns the versions of the modules that programs are compiled with.
	versions := func(a artifact, programs ...string) map[string]string {
		out, err := set.goCommand(t.Context(), a, slices.Concat(
			[]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}"}, programs)...)
		g.Expect(err).NotTo(HaveOccurred())

		all := map[string]string{}

		for line := range strings.Lines(out) {
			if module, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				all[module] = version
			}
		}

		return all
	}

	// In a folder that is no member of the workspace, the workspace is not used.
	project := versions(artifact{pins: "../../.."}, "./cmd/...", "./test/demo")

	packages := map[string][]string{}

	for _, a := range slices.Concat(bedArtifacts, nodeArtifacts) {
		work, err := set.workspace(a)
		g.Expect(err).NotTo(HaveOccurred())

		if a.pkg != "" && work != nil {
			packages[a.pins] = append(packages[a.pins], a.pkg)
		}
	}

	g.Expect(packages).NotTo(BeEmpty())

	for pins, programs := range packages {
		for module, version := range versions(artifact{pins: pins}, programs...) {
			if own, used := project[module]; used {
				g.Expect(version).To(Equal(own), "%s: %s needs another version than the project; upgrade the project's, "+
					"or remove the tools from go.work", module, pins)
			}
		}
	}
}

func TestTheMakefileCompilesWithTheSameFlags(t *testing.T) {
	g := NewWithT(t)

	set, err := Find()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.ReadFile(filepath.Join(set.root, "Makefile"))).
		To(ContainSubstring("\nexport GOFLAGS := " + strings.Join(buildFlags, " ") + "\n"))
}

func TestAProgramIsBuiltAgainAfterAnotherModuleOfItsWorkspaceHasChanged(t *testing.T) {
	g := NewWithT(t)
	s := checkout(t)

	write(t, s, "go.work", "go 1.26.0\n\nuse ./hello\n")
	write(t, s, "go.work.sum", "")
	g.Expect(s.Build(t.Context(), t.Output())).To(Succeed())

	write(t, s, "go.work", "go 1.26.0\n\nuse (\n\t./hello\n\t./shared\n)\n")
	write(t, s, "shared/go.mod", "module shared\n\ngo 1.26.0\n")
	write(t, s, "shared/go.sum", "")

	stale, err := s.stale()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stale).To(HaveLen(1))
	g.Expect(stale[0].name).To(Equal("hello"))
}
