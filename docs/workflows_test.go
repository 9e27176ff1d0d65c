package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
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

// TestActionsArePinned checks that workflows and the image use actions and a base image by digest, which does not move.
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

	image, err := os.ReadFile(filepath.Join(root, ".ko.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(image)).To(MatchRegexp(`(?m)^defaultBaseImage: .*@sha256:[0-9a-f]{64}$`))
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

// TestReleaseIsSigned checks that a release's image and chart are signed, and that their digests and all files are
// attested.
func TestReleaseIsSigned(t *testing.T) {
	g := NewWithT(t)
	release := workflows(t)["release.yaml"]

	g.Expect(release).To(ContainSubstring(
		`for subject in "$IMAGE@$(cat image.digest)" "$CHARTS/capstan@$(cat chart.digest)"`))
	g.Expect(release).To(ContainSubstring(`cosign sign --yes --recursive "$subject"`))

	for _, subject := range []string{
		"subject-checksums: dist/checksums.txt",
		`subject-digest: "${{ steps.push.outputs.image }}"`,
		`subject-digest: "${{ steps.push.outputs.chart }}"`,
	} {
		attested := `actions/attest-build-provenance@.*\n +with: \{.*` + regexp.QuoteMeta(subject)
		g.Expect(release).To(MatchRegexp(attested))
	}
}

// TestVulnerabilitiesAreNoticed checks that Go modules are updated, and checked for vulnerabilities without a push.
func TestVulnerabilitiesAreNoticed(t *testing.T) {
	g := NewWithT(t)

	g.Expect(workflows(t)["vulnerabilities.yaml"]).To(And(
		ContainSubstring("schedule: [{cron: "), ContainSubstring("- run: make vulnerabilities")))

	data, err := os.ReadFile(filepath.Join(root, ".github/dependabot.yaml"))
	g.Expect(err).NotTo(HaveOccurred())

	var config struct {
		Updates []struct {
			Ecosystem string `json:"package-ecosystem"`
			Directory string
		}
	}

	g.Expect(yaml.Unmarshal(data, &config)).To(Succeed())
	g.Expect(config.Updates).To(ContainElement(And(
		HaveField("Ecosystem", "gomod"), HaveField("Directory", "/"))))
}
