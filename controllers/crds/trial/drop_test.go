package trial_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/controllers/crds/trial"
)

func TestRunDropped(t *testing.T) {
	const left = ": not in v1.15.0, so nothing reconciles, validates or converts these objects, nor removes their " +
		"finalizers; delete them, or replace them by objects of other kinds, while the installed version runs"

	never := definition(changes, false)
	never.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse},
	}

	var many objects
	for range 101 {
		many = append(many, empty("a"))
	}

	for name, c := range map[string]struct {
		live    *crd
		objects objects
		want    string
	}{
		"no objects":         {definition(changes, false), nil, ""},
		"one object":         {definition(changes, false), objects{empty("a")}, "samples.example.com (default/a)" + left},
		"only the release's": {definition(changes, false), objects{empty("ignored")}, ""},
		"two objects": {
			definition(changes, false), objects{empty("a"), empty("ignored"), empty("b")},
			"samples.example.com (default/a and default/b)" + left,
		},
		"three objects": {
			definition(changes, false), objects{empty("a"), empty("b"), empty("c")},
			"samples.example.com (3 objects, including default/a and default/b)" + left,
		},
		"too many to count": {
			definition(changes, false), many,
			"samples.example.com (at least 100 objects, including default/a and default/a)" + left,
		},
		"a CRD that was never served": {never, objects{empty("a")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			drop := trial.Drop{Live: c.live, Version: "v1.15.0", Ignore: func(o *unstructured.Unstructured) bool {
				return o.GetName() == "ignored"
			}}

			findings, err := trial.RunDropped(t.Context(), drop, c.objects)
			g.Expect(err).NotTo(HaveOccurred())

			report := trial.NewReport(findings, nil)
			g.Expect(report.Refused()).To(Equal(c.want != ""))

			if c.want == "" {
				g.Expect(findings).To(BeEmpty())
				return
			}

			g.Expect(report.Message()).To(Equal(c.want))
			g.Expect(report.Allowance("v1.15.0")).To(Equal("samples.example.com@v1.15.0"))
			g.Expect(trial.NewReport(findings, []string{"samples.example.com"}).Refused()).To(BeFalse())
		})
	}
}

// TestMessageOfDroppedCRDs: those of a version are one sentence, before what else is unsafe.
func TestMessageOfDroppedCRDs(t *testing.T) {
	dropped := func(name string) trial.Finding {
		return trial.Finding{
			CRD: name, Dropped: true, Affected: 1, Examples: []string{"default/x"},
			Problem: trial.Problem{Message: "not in v2", Remedy: "delete them"},
		}
	}
	report := trial.NewReport([]trial.Finding{
		dropped("b"), {CRD: "z", Problem: trial.Problem{Message: "breaks"}}, dropped("a"), dropped("allowed"),
	}, []string{"allowed"})

	g := NewWithT(t)
	g.Expect(report.Message()).To(Equal("a (default/x), b (default/x): not in v2; delete them. z: breaks; "))
	g.Expect(report.Left()).To(Equal("a (default/x), allowed (default/x), b (default/x)"))
}
