package safety

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestJudgeFinding(t *testing.T) {
	all := &Trial{Objects: 10}

	for _, c := range []struct {
		name    string
		finding Finding
		trial   *Trial
		want    Level
	}{
		{"not tried", Finding{Rule: RuleFieldRemoved, Level: Error}, nil, Error},
		{"not readable", Finding{Rule: RuleFieldRemoved, Level: Error}, &Trial{Failed: "no answer"}, Error},
		{"not all tried", Finding{Rule: RuleFieldRemoved, Level: Error}, &Trial{Partial: true}, Error},
		{"none affected", Finding{Rule: RuleFieldRemoved, Level: Error}, all, Warning},
		{"some affected", Finding{Rule: RuleEnumRestricted, Level: Warning, Affected: 1}, all, Error},
		{"status", Finding{Rule: RuleEnumRestricted, Level: Warning, Path: "status.phase", Affected: 1}, all, Warning},
		{
			"status, updates rejected",
			Finding{Rule: RuleEnumRestricted, Level: Warning, Path: "status.phase", Affected: 1, UpdatesRejected: true},
			all,
			Error,
		},
		{"rejected by the API server anyway", Finding{Rule: RuleKindChanged, Level: Error}, all, Error},
		{"information", Finding{Rule: RuleVersionDeprecated, Level: Info}, all, Info},
		{"remedy that is not about objects", Finding{Rule: RuleDefaultChanged, Level: Warning}, all, Warning},
	} {
		t.Run(c.name, func(t *testing.T) {
			NewWithT(t).Expect(judgeFinding(c.finding, c.trial).Level).To(Equal(c.want))
		})
	}
}

func TestJudgeUnreadableObjects(t *testing.T) {
	const failure = `conversion webhook for infrastructure.cluster.x-k8s.io/v1beta2, Kind=DockerMachine failed: ` +
		`Post "https://capd-webhook-service.capd-system.svc:443/convert?timeout=30s": connect: connection refused`

	g := NewWithT(t)
	at := location{crd: "samples.example.com", version: "v1beta1", path: "spec.bootstrapped"}
	trial := &Trial{Failed: failure}

	judged := judgeFinding(at.finding(RuleFieldRemoved, "the field is removed"), trial)
	g.Expect(judged.Level).To(Equal(Error))
	g.Expect(judged.String()).To(Equal("samples.example.com v1beta1 spec.bootstrapped: the field is removed; " +
		"whether it affects objects is not known, because the objects could not be read in this version: " + failure +
		"; make the provider's conversion webhook respond"))

	rejected := judgeFinding(at.finding(RuleKindChanged, "the kind has changed"), trial)
	g.Expect(rejected.Message).To(Equal("the kind has changed"), "whatever the objects are")
}

func TestJudgeRemovedVersion(t *testing.T) {
	g := NewWithT(t)
	finding := location{crd: "samples.example.com", version: "v1"}.
		finding(RuleServedVersionRemoved, "the version is no longer served")

	unused := judgeRemovedVersion(finding, &Trial{Objects: 10}, nil)
	g.Expect(unused.Level).To(Equal(Warning))
	g.Expect(unused.Text()).To(Equal("the version is no longer served; no object is affected"))

	used := judgeRemovedVersion(finding, &Trial{Objects: 10}, []string{"a", "b"})
	g.Expect(used.Level).To(Equal(Error))
	g.Expect(used.Message).To(Equal("the version is no longer served, but is used by a, b"))
}

func TestVersionsToRead(t *testing.T) {
	version := func(name string, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: served, Storage: storage}
	}
	live := &apiextensionsv1.CustomResourceDefinition{}
	live.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		version("v1", true, true), version("v1beta1", true, false), version("v1alpha1", false, false),
	}
	change := func(i int, level Level) versionChange {
		return versionChange{from: &live.Spec.Versions[i], findings: []Finding{{Level: level}}}
	}

	for name, c := range map[string]struct {
		comparison comparison
		want       []string
	}{
		"no findings":       {comparison{}, nil},
		"information only":  {comparison{versions: []versionChange{change(0, Info)}}, nil},
		"a warning":         {comparison{versions: []versionChange{change(1, Warning)}}, []string{"v1beta1"}},
		"not served":        {comparison{versions: []versionChange{change(2, Error)}}, nil},
		"a removed version": {comparison{removedVersions: []Finding{{Version: "v1alpha1"}}}, []string{"v1"}},
		"each version once, in the CRD's order": {
			comparison{versions: []versionChange{change(1, Error), change(0, Error), change(1, Error)}},
			[]string{"v1", "v1beta1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.comparison.live = live
			NewWithT(t).Expect(newOutcome(&c.comparison).versionsToRead()).To(Equal(c.want))
		})
	}
}
