package reconcile

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestDriftPolicy(t *testing.T) {
	with := func(policy v1alpha2.DriftPolicy) *v1alpha2.ReleaseSpec { return &v1alpha2.ReleaseSpec{Drift: policy} }

	for name, test := range map[string]struct {
		spec     v1alpha2.ProviderSpec
		expected v1alpha2.DriftPolicy
	}{
		"no release": {v1alpha2.ProviderSpec{}, v1alpha2.DriftCorrect},
		"no policy":  {v1alpha2.ProviderSpec{Release: with("")}, v1alpha2.DriftCorrect},
		"Correct":    {v1alpha2.ProviderSpec{Release: with(v1alpha2.DriftCorrect)}, v1alpha2.DriftCorrect},
		"Warn":       {v1alpha2.ProviderSpec{Release: with(v1alpha2.DriftWarn)}, v1alpha2.DriftWarn},
		"Off":        {v1alpha2.ProviderSpec{Release: with(v1alpha2.DriftOff)}, v1alpha2.DriftOff},
		"suspended":  {v1alpha2.ProviderSpec{Suspend: true}, v1alpha2.DriftWarn},
		"suspended, Correct": {
			v1alpha2.ProviderSpec{Suspend: true, Release: with(v1alpha2.DriftCorrect)}, v1alpha2.DriftWarn,
		},
		"suspended, Off": {v1alpha2.ProviderSpec{Suspend: true, Release: with(v1alpha2.DriftOff)}, v1alpha2.DriftOff},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(driftPolicy(&test.spec)).To(Equal(test.expected))
		})
	}
}

func TestSummarizeDrift(t *testing.T) {
	g := NewWithT(t)
	g.Expect(summarizeDrift([]string{"a", "b"})).To(Equal("a; b"))
	g.Expect(summarizeDrift([]string{"a", "b", "c", "d", "e", "f", "g"})).To(Equal("a; b; c; d; e (and 2 more)"))
}
