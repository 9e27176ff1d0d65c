package safety_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/safety"
)

func TestReportMessage(t *testing.T) {
	g := NewWithT(t)

	const secret = "hunter2"

	var all objects
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(
			all,
			sample(name, "enumAdded", secret),
			sample(name, "pattern", secret),
			sample(name, "removed", "{a: "+secret+"}"),
			sample(name, "type", secret),
			sample(name, "validation", "{a: 2}"),
			sample(name, "maxLengthInMap", "{key: "+secret+"}"),
		)
	}

	report, err := safety.Check(
		t.Context(),
		safety.Input{
			Objects: all,
			Changes: []safety.Change{{Live: definition(changes, false), Desired: definition(changes, true)}},
		},
	)
	g.Expect(err).NotTo(HaveOccurred())

	message := report.Message()
	g.Expect(message).
		To(HavePrefix("samples.example.com v1 spec.enumAdded: " +
			"enum: enum constraint added when there was none previously: [\"b\"]; breaks 4 objects, including " +
			"default/a and default/b; change the affected objects"))
	g.Expect(message).To(HaveSuffix(". and 3 more"))
	g.Expect(len(message)).To(BeNumerically("<", 1500))
	g.Expect(report.WithLevel(safety.Error)).To(HaveLen(6))

	for _, text := range []string{message, report.String()} {
		g.Expect(text).NotTo(ContainSubstring(secret))
	}

	none, err := safety.Check(t.Context(), safety.Input{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none.Message()).To(Equal("the change of the CustomResourceDefinitions breaks no objects or clients"))
}

func TestAllowedCRDs(t *testing.T) {
	for annotation, want := range map[string][]string{
		"":                                 nil,
		"a.example.com":                    nil,
		"a.example.com@":                   nil,
		"a.example.com@v1.2.0":             {"a.example.com"},
		"a.example.com@v1.1.0":             nil,
		"a.example.com@v1.2.0,\n b@v1.2.0": {"a.example.com", "b"},
		"a.example.com@v1.1.0 b@v1.2.0":    {"b"},
	} {
		annotations := map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: annotation}
		NewWithT(t).Expect(safety.AllowedCRDs(annotations, "v1.2.0")).To(Equal(want), "%q", annotation)
	}

	NewWithT(t).Expect(safety.AllowedCRDs(map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: "a@"}, "")).To(BeEmpty())
}

func TestAllowanceNamesEachCRDWithErrors(t *testing.T) {
	report := &safety.Report{Findings: []safety.Finding{
		{CRD: "b.example.com", Level: safety.Error},
		{CRD: "a.example.com", Level: safety.Error},
		{CRD: "b.example.com", Level: safety.Error},
		{CRD: "c.example.com", Level: safety.Warning},
	}}

	NewWithT(t).Expect(report.Allowance("v1.2.0")).To(Equal("b.example.com@v1.2.0,a.example.com@v1.2.0"))
}
