package lint_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint"
)

// accepting returns an edit that adds a list of accepted findings to metadata.yaml.
func accepting(list string) edit {
	return replaceMetadata("kind: Metadata\n",
		"kind: Metadata\nmetadata:\n  annotations:\n    capstan.dev/accepted-findings: |\n"+list)
}

// accountMissing breaks the rule references/service-account.
var accountMissing = replace("serviceAccountName: example-manager", "serviceAccountName: other")

// TestAccepted: a finding that metadata.yaml accepts is marked with the reason and does not count.
func TestAccepted(t *testing.T) {
	const account, reason = "references/service-account", "reason: Users create it."

	for name, c := range map[string]struct {
		entry    string
		accepted bool
	}{
		"by rule":        {"{rule: " + account + ", " + reason + "}", true},
		"by object":      {"{rule: " + account + ", object: example-controller, " + reason + "}", true},
		"by file":        {"{rule: " + account + ", file: control-plane-components.yaml, " + reason + "}", true},
		"another rule":   {"{rule: references/role, " + reason + "}", false},
		"another kind":   {"{rule: " + account + ", kind: Job, " + reason + "}", false},
		"another file":   {"{rule: " + account + ", file: metadata.yaml, " + reason + "}", false},
		"without reason": {"{rule: " + account + "}", false},
		"no rule":        {account, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := controlPlaneProvider()
			with(accountMissing, accepting("      - "+c.entry+"\n"))(t, b)

			all := lint.Bundle(b, nil)
			found := findingsOf("references/service-account", all)
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].Accepted != "").To(Equal(c.accepted))
			g.Expect(lint.Fail(all, lint.Error)).To(Equal(!c.accepted))
		})
	}
}

// TestUnusedAcceptances: an entry that selects nothing is reported once all files are known, unless its rule is one of
// another program.
func TestUnusedAcceptances(t *testing.T) {
	g := NewWithT(t)
	b := controlPlaneProvider()
	with(accountMissing, accepting("      - {rule: references/service-account, reason: Users create it.}\n"+
		"      - {rule: files/names, file: clusterclass.yaml, reason: It is for tests.}\n"+
		"      - {rule: references/role, object: gone, reason: Users create it.}\n"+
		"      - {rule: owners/chain, reason: Users own it.}\n"))(t, b)

	folder := lint.Folder{
		Path:       "out",
		Names:      []string{"my-components.yaml", "metadata.yaml", "clusterclass.yaml"},
		Components: "my-components.yaml",
	}
	found := folder.Lint(b, nil)

	unused := findingsOf("metadata/accepted-findings", append([]lint.Finding{}, found...))
	g.Expect(unused).To(HaveLen(1))
	g.Expect(unused[0].Message).To(Equal("accepts references/role gone, which is not found"))
	g.Expect(unused[0].File).To(Equal(filepath.Join("out", "metadata.yaml")))

	account := findingsOf("references/service-account", append([]lint.Finding{}, found...))
	g.Expect(account[0].File).To(Equal(filepath.Join("out", "my-components.yaml")))
	g.Expect(lint.Summary(found)).To(Equal("2 warnings, 2 accepted"))
}

// TestAcceptedFormats: all formats tell accepted findings from others.
func TestAcceptedFormats(t *testing.T) {
	g := NewWithT(t)
	b := controlPlaneProvider()
	with(accountMissing, accepting("      - {rule: references/service-account, reason: Users create it.}\n"))(t, b)

	for format, want := range map[string]string{
		"text": "accepted:\n  components.yaml:187  Deployment example-controller  references/service-account runs as " +
			"ServiceAccount other, which is missing\n  Reason:  Users create it.\n\n1 accepted\n",
		"json":   `"accepted": "Users create it."`,
		"sarif":  `"justification": "Users create it."`,
		"github": "",
	} {
		var out bytes.Buffer
		g.Expect(lint.Write(&out, format, lint.Rules(), lint.Bundle(b, nil))).To(Succeed())
		g.Expect(out.String()).To(ContainSubstring(want), format)
		g.Expect(format == "github" && out.Len() > 0).To(BeFalse())
	}
}

// TestBaseline: the findings of an earlier run do not count, whatever the folder and the lines are. Others do.
func TestBaseline(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "baseline.json")
	lintIn := func(path string, edits ...edit) []lint.Finding {
		b := controlPlaneProvider()
		with(edits...)(t, b)

		return lint.Folder{Path: path, Components: "control-plane-components.yaml"}.Lint(b, nil)
	}

	var out bytes.Buffer
	g.Expect(lint.Write(&out, "json", lint.Rules(), lintIn("old", accountMissing))).To(Succeed())
	g.Expect(os.WriteFile(file, out.Bytes(), 0o600)).To(Succeed())

	baseline, err := lint.ReadBaseline(file)
	g.Expect(err).NotTo(HaveOccurred())

	found := lintIn("new", replace("apiVersion: v1\nkind: Namespace", "\n\napiVersion: v1\nkind: Namespace"),
		accountMissing, replace("kind: ClusterRole, name: example-role", "kind: ClusterRole, name: other"))
	g.Expect(lint.Accept(found, baseline)).To(BeEmpty())
	g.Expect(lint.Fail(found, lint.Error)).To(BeFalse())
	g.Expect(lint.Fail(found, lint.Warning)).To(BeTrue())
	g.Expect(lint.Summary(found)).To(Equal("1 warning, 1 accepted"))
}

// TestBaselineKeepsReasons: what a release had accepted with a reason is not part of a baseline, so that it counts when
// the release does not accept it any more.
func TestBaselineKeepsReasons(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "baseline.yaml")
	g.Expect(os.WriteFile(file, []byte(`findings:
- {rule: references/role, accepted: Users create it.}
- {rule: references/subject, accepted: part of the baseline}
- {rule: owners/chain, kind: Secret, reason: The backup owns it.}
`), 0o600)).To(Succeed())

	baseline, err := lint.ReadBaseline(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(baseline).To(ConsistOf(
		lint.Acceptance{Rule: "references/subject"},
		lint.Acceptance{Rule: "owners/chain", Kind: "Secret", Reason: "The backup owns it."},
	))
}

func TestInvalidBaselines(t *testing.T) {
	for name, text := range map[string]string{
		"not YAML":      "{",
		"no findings":   "rules: []",
		"without rules": "findings: [{kind: Secret}]",
	} {
		file := filepath.Join(t.TempDir(), "baseline.yaml")
		NewWithT(t).Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())

		_, err := lint.ReadBaseline(file)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(file+" is no baseline")), name)
	}
}

// TestAcceptedByOthers: metadata.yaml that is not valid accepts nothing.
func TestAcceptedByOthers(t *testing.T) {
	b := controlPlaneProvider()
	NewWithT(t).Expect(lint.AcceptedBy(b.Metadata)).To(BeEmpty())
	NewWithT(t).Expect(lint.AcceptedBy([]byte("kind: " + bundle.Placeholder))).To(BeEmpty())
}
