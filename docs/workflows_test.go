package docs_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/modfile"
	"sigs.k8s.io/yaml"
)

// workflow has the fields of a GitHub workflow that the tests read.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Permissions map[string]string
		Steps       []struct{ Uses, Run string }
	}
}

// workflows returns the text of the project's workflows by file name.
func workflows(t *testing.T) map[string]string {
	t.Helper()

	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, error %v", files, err)
	}

	found := map[string]string{}

	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		found[filepath.Base(file)] = string(data)
	}

	return found
}

// TestActionsArePinned checks that workflows use actions by digest, which does not move.
func TestActionsArePinned(t *testing.T) {
	g := NewWithT(t)
	uses := regexp.MustCompile(`(?m)^[ -]*uses:.*$`)
	pinned := regexp.MustCompile(`^[ -]*uses: [\w.-]+/[\w.-]+(/[\w./-]+)?@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

	for file, text := range workflows(t) {
		lines := uses.FindAllString(text, -1)
		g.Expect(lines).To(HaveLen(strings.Count(text, "uses:")), file)

		for _, line := range lines {
			g.Expect(line).To(MatchRegexp(pinned.String()), file)
		}
	}
}

// TestWorkflowPermissions checks that only a job that runs no code of the repository can write anything.
func TestWorkflowPermissions(t *testing.T) {
	g := NewWithT(t)
	writers := 0

	for file, text := range workflows(t) {
		var w workflow
		g.Expect(yaml.Unmarshal([]byte(text), &w)).To(Succeed(), file)
		g.Expect(w.Permissions).To(Equal(map[string]string{"contents": "read"}), "%s: default of all jobs", file)

		for name, job := range w.Jobs {
			writes := false
			for _, permission := range job.Permissions {
				writes = writes || permission != "read" && permission != "none"
			}

			if !writes {
				continue
			}

			writers++

			for _, step := range job.Steps {
				g.Expect(step.Uses).NotTo(HavePrefix("actions/checkout@"), "%s: job %s", file, name)
				g.Expect(step.Run).NotTo(MatchRegexp(`\b(make|go) `), "%s: job %s", file, name)
			}
		}
	}

	g.Expect(writers).To(Equal(1), "the job that publishes a release")
}

// TestReleaseIsSigned checks that a release's images and chart are signed, and that their digests and all files are
// attested.
func TestReleaseIsSigned(t *testing.T) {
	g := NewWithT(t)
	release := workflows(t)["release.yaml"]

	g.Expect(release).To(ContainSubstring(
		`for subject in "$IMAGE@$(cat image.digest)" "$CLI@$(cat cli.digest)" "$CHARTS/capstan@$(cat chart.digest)"`))
	g.Expect(release).To(ContainSubstring(`cosign sign --yes --recursive "$subject"`))

	for _, subject := range []string{
		"subject-checksums: dist/checksums.txt",
		`subject-digest: "${{ steps.push.outputs.image }}"`,
		`subject-digest: "${{ steps.push.outputs.cli }}"`,
		`subject-digest: "${{ steps.push.outputs.chart }}"`,
	} {
		attested := `actions/attest-build-provenance@.*\n +with: \{.*` + regexp.QuoteMeta(subject)
		g.Expect(release).To(MatchRegexp(attested))
	}
}

// TestVulnerabilitiesAreNoticed checks that the code is checked for vulnerabilities without a push.
func TestVulnerabilitiesAreNoticed(t *testing.T) {
	NewWithT(t).Expect(workflows(t)["vulnerabilities.yaml"]).To(And(
		ContainSubstring("schedule: [{cron: "), ContainSubstring("- run: make vulnerabilities")))
}

// updates is an entry of Dependabot's configuration.
type updates struct {
	Ecosystem   string `json:"package-ecosystem"`
	Directory   string
	Directories []string
	Allow       []struct {
		Name string `json:"dependency-name"`
		Type string `json:"dependency-type"`
	}
}

// watches reports whether the entry is about a folder.
func (u updates) watches(folder string) bool {
	return slices.ContainsFunc(append(u.Directories, u.Directory), func(pattern string) bool {
		matches, err := path.Match(pattern, folder)
		return matches && err == nil
	})
}

// allows reports whether the entry updates a requirement. Without an explicit type, only direct ones are.
func (u updates) allows(r *modfile.Require) bool {
	for _, rule := range u.Allow {
		if (rule.Name == "" || rule.Name == r.Mod.Path) && (rule.Type == "all" || !r.Indirect) {
			return true
		}
	}

	return len(u.Allow) == 0 && !r.Indirect
}

// dependabot returns the entries of Dependabot's configuration.
func dependabot(t *testing.T) []updates {
	t.Helper()
	g := NewWithT(t)

	data, err := os.ReadFile(filepath.Join(root, ".github/dependabot.yaml"))
	g.Expect(err).NotTo(HaveOccurred())

	var config struct{ Updates []updates }
	g.Expect(yaml.Unmarshal(data, &config)).To(Succeed())

	return config.Updates
}

// TestImagesAreUpdated checks that Dependabot watches the images of the Dockerfile, which are pinned by digest.
func TestImagesAreUpdated(t *testing.T) {
	g := NewWithT(t)
	g.Expect(filepath.Join(root, "Dockerfile")).To(BeARegularFile())
	g.Expect(slices.ContainsFunc(dependabot(t), func(u updates) bool {
		return u.Ecosystem == "docker" && u.watches("/")
	})).To(BeTrue())
}

// TestModulesAreUpdated checks that Dependabot watches each Go module once, and updates its tools, or what it requires
// if it has none.
func TestModulesAreUpdated(t *testing.T) {
	g := NewWithT(t)

	modules := modules(t)
	g.Expect(modules).To(HaveKey("/"))

	for folder, module := range modules {
		watching := slices.DeleteFunc(dependabot(t), func(u updates) bool {
			return u.Ecosystem != "gomod" || !u.watches(folder)
		})
		g.Expect(watching).To(HaveLen(1), "entries of .github/dependabot.yaml for %s", folder)

		for _, r := range module.Require {
			isTool := slices.ContainsFunc(module.Tool, func(tool *modfile.Tool) bool { return isProvidedBy(tool, r, module) })
			if isTool || !r.Indirect && (folder == "/" || len(module.Tool) == 0) {
				g.Expect(watching[0].allows(r)).To(BeTrue(), "%s in %s", r.Mod.Path, folder)
			}
		}
	}
}

// isProvidedBy reports whether a requirement has a tool: no other one has a longer path that the tool's begins with.
func isProvidedBy(tool *modfile.Tool, r *modfile.Require, module *modfile.File) bool {
	var provider string

	for _, other := range module.Require {
		begins := strings.HasPrefix(tool.Path+"/", other.Mod.Path+"/")
		if begins && len(other.Mod.Path) > len(provider) {
			provider = other.Mod.Path
		}
	}

	return provider == r.Mod.Path
}

// modules returns the project's Go modules by folder.
func modules(t *testing.T) map[string]*modfile.File {
	t.Helper()

	found := map[string]*modfile.File{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "dist", "testdata"}, entry.Name()):
			return filepath.SkipDir
		case entry.Name() != "go.mod":
			return nil
		}

		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}

		folder, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}

		found[path.Join("/", filepath.ToSlash(folder))], err = modfile.Parse(name, data, nil)

		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return found
}

// manual are the targets that pages name and nothing runs by itself.
var manual = map[string]string{
	"bed":                "it runs until Ctrl-C",
	"bench-availability": "it needs the programs of managers, and real releases of their providers",
	"image":              "`make release` makes it",
	"screenshots":        "it changes the pictures",
	"test-changed":       "it is a part of test, for contributors",
	"help":               "it only prints",
}

// TestTargetsAreRun checks that the Makefile has the targets that pages name, and that a workflow or .ci/run runs them,
// so that what pages name works.
func TestTargetsAreRun(t *testing.T) {
	g := NewWithT(t)

	needed := targets(t)
	run := map[string]bool{}

	var add func(target string)

	add = func(target string) {
		if !run[target] {
			run[target] = true
			for _, n := range needed[target] {
				add(n)
			}
		}
	}

	for _, target := range automatic(t) {
		g.Expect(needed).To(HaveKey(target))
		add(target)
	}

	for target := range manual {
		g.Expect(run).NotTo(HaveKey(target), "it is run")
	}

	count := 0

	for page, content := range pages(t) {
		for _, text := range code(page, content) {
			for _, target := range made(text) {
				count++

				g.Expect(needed).To(HaveKey(target), page)
				g.Expect(run[target] || manual[target] != "").To(BeTrue(), "make %s, of %s, is run by nothing", target, page)
			}
		}
	}

	g.Expect(count).To(BeNumerically(">", 20))
}

// targets returns the targets of the Makefile, with those that each of them needs.
func targets(t *testing.T) map[string][]string {
	t.Helper()

	data, err := os.ReadFile(filepath.Join(root, "Makefile"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	needed := map[string][]string{}
	rule := regexp.MustCompile(`(?m)^([a-z0-9][a-z0-9 -]*):([a-z0-9 -]*)(?: .*)?$`)

	for _, match := range rule.FindAllStringSubmatch(string(data), -1) {
		for _, target := range strings.Fields(match[1]) {
			needed[target] = append(needed[target], strings.Fields(match[2])...)
		}
	}

	return needed
}

// automatic returns the targets that workflows and .ci/run run.
func automatic(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)

	var found []string

	for file, text := range workflows(t) {
		var w workflow
		g.Expect(yaml.Unmarshal([]byte(text), &w)).To(Succeed(), file)

		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				found = append(found, made(step.Run)...)
			}
		}
	}

	script, err := os.ReadFile(filepath.Join(root, ".ci/run"))
	g.Expect(err).NotTo(HaveOccurred())

	stages := regexp.MustCompile(`(?m)^for target in ([a-z0-9][a-z0-9 -]*)`)
	for _, match := range stages.FindAllStringSubmatch(string(script), -1) {
		found = append(found, strings.Fields(match[1])...)
	}

	return found
}

// made returns the targets that a command makes.
func made(command string) []string {
	match := regexp.MustCompile(`(?:^| )make(?: -k)?((?: [a-z0-9][a-z0-9-]*)+)`).FindStringSubmatch(command)
	if match == nil {
		return nil
	}

	return strings.Fields(match[1])
}
