package trial_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/trial"
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

	report := run(t, trial.Change{Live: definition(changes, false), Desired: definition(changes, true)}, all)

	message := report.Message()
	g.Expect(message).To(HavePrefix("samples.example.com v1 spec.enumAdded: the value is no longer valid: "))
	g.Expect(message).To(ContainSubstring(
		"; breaks 4 objects, including default/a and default/b; change the affected objects"))
	g.Expect(message).To(HaveSuffix(". and 3 more"))
	g.Expect(len(message)).To(BeNumerically("<", 1500))
	g.Expect(report.Findings).To(HaveLen(6))

	for _, f := range report.Findings {
		g.Expect(f.String()).NotTo(ContainSubstring(secret))
	}

	none := trial.NewReport(nil, nil)
	g.Expect(none.Message()).To(Equal("the change of the CustomResourceDefinitions breaks no objects"))
}

// TestMessagesOfRules: a rule's fixed message is passed on, and one that is computed from the object is not.
func TestMessagesOfRules(t *testing.T) {
	g := NewWithT(t)
	c := change{
		name: "rules",
		old:  "{type: object, properties: {a: {type: string}}}",
		new: "{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [" +
			"{rule: \"self.a != 'hunter2'\", message: a is too easy}, " +
			"{rule: \"self.a != 'hunter2' || false\", messageExpression: \"'refused: ' + self.a\"}]}",
	}

	report := run(t, trial.Change{Live: definition([]change{c}, false), Desired: definition([]change{c}, true)},
		objects{sample("x", "rules", "{a: hunter2}")})

	var messages []string
	for _, f := range report.Findings {
		messages = append(messages, f.Message)
	}

	g.Expect(messages).To(ConsistOf("the value is no longer valid: a is too easy", "the value is no longer valid"))
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
		NewWithT(t).Expect(trial.AllowedCRDs(annotations, "v1.2.0")).To(Equal(want), "%q", annotation)
	}

	NewWithT(t).Expect(trial.AllowedCRDs(map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: "a@"}, "")).To(BeEmpty())
}

func TestAllowanceNamesEachCRD(t *testing.T) {
	report := &trial.Report{Findings: []trial.Finding{
		{CRD: "b.example.com"}, {CRD: "a.example.com"}, {CRD: "b.example.com"},
	}}

	NewWithT(t).Expect(report.Allowance("v1.2.0")).To(Equal("b.example.com@v1.2.0,a.example.com@v1.2.0"))
}
