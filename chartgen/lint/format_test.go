package lint_test

import (
	"bytes"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/lint"
)

// written returns two errors, a warning, and an info in a format.
func written(t *testing.T, format string) string {
	b := controlPlaneProvider()
	replaceMetadata("minor: 2", "minor: 1")(t, b)
	replace(
		"controller:v1.2.3", "controller",
		"serviceAccountName: example-manager", "serviceAccountName: other",
		"EXAMPLE_", "",
	)(t, b)

	var out bytes.Buffer
	NewWithT(t).Expect(lint.Write(&out, format, lint.Rules(), lint.Bundle(b, nil))).To(Succeed())

	return out.String()
}

func TestText(t *testing.T) {
	g := NewWithT(t)
	text := written(t, "text")
	g.Expect(text).To(HavePrefix("error metadata/series: "))
	g.Expect(text).To(MatchRegexp(
		`(?m)^  components.yaml:\d+  Deployment example-controller  runs as ServiceAccount other, which is missing$`))
	g.Expect(text).To(MatchRegexp(`(?m)^  Why:     Kubernetes creates no Pod`))
	g.Expect(text).To(MatchRegexp(`(?m)^  Remedy:  Add the ServiceAccount`))
	g.Expect(text).To(HaveSuffix("\n\n2 errors, 1 warning, 1 info\n"))

	var out bytes.Buffer
	g.Expect(lint.Write(&out, "text", lint.Rules(), nil)).To(Succeed())
	g.Expect(out.String()).To(Equal("no findings\n"))
}

// TestPages: a finding refers to the page about the kind of its object.
func TestPages(t *testing.T) {
	g := NewWithT(t)
	b := infrastructureProvider()
	replace("plural: examplemachines}\n  scope: Namespaced", "plural: examplemachines}\n  scope: Cluster",
		"plural: exampleconfigs}\n  scope: Namespaced", "plural: exampleconfigs}\n  scope: Cluster")(t, b)

	const pages = "https://cluster-api.sigs.k8s.io/developer/providers/contracts/"

	found := findingsOf("crd/scope", lint.Bundle(b, nil))
	g.Expect(found).To(HaveLen(2))
	g.Expect(found[0].Contract).To(Equal(pages + "infra-machine#all-resources-scope"))

	var out bytes.Buffer
	g.Expect(lint.Write(&out, "text", lint.Rules(), found)).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring("See:     " + pages + "bootstrap-config#all-resources-scope\n" +
		"           " + pages + "infra-machine#all-resources-scope\n"))
}

func TestJSON(t *testing.T) {
	g := NewWithT(t)

	var report struct {
		Errors, Warnings, Infos int
		Findings                []lint.Finding
	}
	g.Expect(json.Unmarshal([]byte(written(t, "json")), &report)).To(Succeed())
	g.Expect([]int{report.Errors, report.Warnings, report.Infos}).To(Equal([]int{2, 1, 1}))
	g.Expect(report.Findings).To(HaveLen(4))

	for _, f := range report.Findings {
		g.Expect([]string{f.Rule, string(f.Level), f.File, f.Message, f.Contract, f.Why, f.Remedy}).NotTo(ContainElement(""))
	}

	var out bytes.Buffer
	g.Expect(lint.Write(&out, "json", lint.Rules(), nil)).To(Succeed())
	g.Expect(out.String()).To(MatchJSON(`{"errors": 0, "warnings": 0, "infos": 0, "accepted": 0, "findings": []}`))
}

func TestSARIF(t *testing.T) {
	g := NewWithT(t)

	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct{ ID string }
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           *struct{ StartLine int }
					}
				}
			}
		}
	}
	g.Expect(json.Unmarshal([]byte(written(t, "sarif")), &log)).To(Succeed())
	g.Expect(log.Version).To(Equal("2.1.0"))
	g.Expect(log.Runs).To(HaveLen(1))
	driver, results := log.Runs[0].Tool.Driver, log.Runs[0].Results
	g.Expect(driver.Name).To(Equal("capstan"))
	g.Expect(driver.Rules).To(HaveLen(len(lint.Rules())))
	g.Expect(results).To(HaveLen(4))

	for _, r := range results {
		g.Expect(driver.Rules[r.RuleIndex].ID).To(Equal(r.RuleID))
		g.Expect(r.Level).To(BeElementOf("error", "warning", "note"))
		g.Expect(r.Message.Text).NotTo(BeEmpty())
		g.Expect(r.Locations).To(HaveLen(1))
		g.Expect(r.Locations[0].PhysicalLocation.ArtifactLocation.URI).To(HaveSuffix(".yaml"))

		if region := r.Locations[0].PhysicalLocation.Region; region != nil {
			g.Expect(region.StartLine).To(BeNumerically(">", 0)) // SARIF counts from 1
		}
	}

	var out bytes.Buffer

	finding := lint.Finding{Rule: "metadata/kind", Level: lint.Info, File: "/a b/metadata.yaml"}
	g.Expect(lint.Write(&out, "sarif", lint.Rules(), []lint.Finding{finding})).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring(`"uri": "file:///a%20b/metadata.yaml"`))
	out.Reset()
	g.Expect(lint.Write(&out, "sarif", lint.Rules(), nil)).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring(`"results": []`), "in SARIF, a missing list means that the run failed")
}

func TestGitHubAnnotations(t *testing.T) {
	g := NewWithT(t)
	text := written(t, "github")
	g.Expect(text).To(MatchRegexp(`(?m)^::error file=components\.yaml,line=\d+,title=references/service-account::` +
		`Deployment example-controller runs as ServiceAccount other, which is missing\. Kubernetes`))
	g.Expect(text).
		To(MatchRegexp(`(?m)^::error file=metadata\.yaml,title=metadata/series::metadata\.yaml does not list the series`))
	g.Expect(text).To(MatchRegexp(`(?m)^::warning file=`))
	g.Expect(text).To(MatchRegexp(`(?m)^::notice file=`))

	var out bytes.Buffer

	g.Expect(lint.Write(&out, "github", lint.Rules(), []lint.Finding{{
		Rule:    "a/b",
		Level:   lint.Error,
		File:    "a,b:c.yaml",
		Line:    3,
		Message: "is 100%\nwrong",
		Why:     "It fails.",
		Remedy:  "Fix it.",
	}})).To(Succeed())
	g.Expect(out.String()).To(Equal(
		"::error file=a%2Cb%3Ac.yaml,line=3,title=a/b::a,b:c.yaml is 100%25%0Awrong. It fails. Fix it.\n"))
}

// TestObjectsInClusters: a finding may concern an object in a cluster, and rules that are not in this package.
func TestObjectsInClusters(t *testing.T) {
	rule := lint.Rule{Name: "a/b", Level: lint.Error, Contract: "https://example.com", Requirement: "It works.",
		Why: "It fails.", Remedy: "Fix it."}
	finding := rule.Finding("is wrong")
	finding.Kind, finding.Object = "Machine", "default/one"

	for format, want := range map[string]string{
		"text":   "error a/b: It works.\n  Machine default/one  is wrong\n",
		"json":   `"object": "default/one",` + "\n" + `      "message": "is wrong"`,
		"sarif":  `"fullyQualifiedName": "Machine/default/one"`,
		"github": "::error title=a/b::Machine default/one is wrong. It fails. Fix it.\n",
	} {
		var out bytes.Buffer

		g := NewWithT(t)
		g.Expect(lint.Write(&out, format, []lint.Rule{rule}, []lint.Finding{finding})).To(Succeed())
		g.Expect(out.String()).To(ContainSubstring(want))
		g.Expect(out.String()).NotTo(Or(ContainSubstring("file"), ContainSubstring("physicalLocation")))
	}
}

func TestUnknownFormat(t *testing.T) {
	NewWithT(t).Expect(lint.Write(&bytes.Buffer{}, "xml", lint.Rules(), nil)).
		To(MatchError(ContainSubstring("text, json, sarif, github")))
}

func TestMarkdownTable(t *testing.T) {
	rule := lint.Rule{Name: "a/b", Level: lint.Error, Contract: "https://example.com", Requirement: "It is <a> | <b>."}
	NewWithT(t).Expect(lint.MarkdownTable([]lint.Rule{rule})).To(Equal("| Rule | Level | Requirement |\n" +
		"| --- | --- | --- |\n| [a/b](https://example.com) | error | It is &lt;a> \\| &lt;b>. |\n"))
}
