package provider

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
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

func TestLostMeanwhile(t *testing.T) {
	role := object.Key{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Name: "manager"}
	report := func(s status.Status) *health.Report {
		return &health.Report{Objects: []health.ObjectHealth{{Object: role, Result: health.Result{Status: s}}}}
	}
	deviations := func(o object.Key) *[]deviation {
		return &[]deviation{{Difference: apply.Difference{Object: o}}}
	}

	for name, test := range map[string]struct {
		health     *health.Report
		deviations *[]deviation
		expected   bool
	}{
		"missing after drift was looked for": {report(status.NotFoundStatus), &[]deviation{}, true},
		"missing, and another has drifted":   {report(status.NotFoundStatus), deviations(object.Key{Name: "other"}), true},
		"found missing as drift":             {report(status.NotFoundStatus), deviations(role), false},
		"existing":                           {report(status.InProgressStatus), &[]deviation{}, false},
		"drift was not looked for":           {report(status.NotFoundStatus), nil, false},
		"health is unknown":                  {nil, &[]deviation{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := run{installed: installed{health: test.health, deviations: test.deviations}}
			NewWithT(t).Expect(r.lostMeanwhile()).To(Equal(test.expected))
		})
	}
}

func TestWhyLeft(t *testing.T) {
	next := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	for want, c := range map[string]struct {
		difference apply.Difference
		failure    error
	}{
		"it is changed back each time it is corrected, by a program that kubectl get --show-managed-fields names": {},
		"it is deleted each time it is created, by a program that the audit log of the API server names": {
			difference: apply.Difference{Missing: true},
		},
		"it is forbidden": {difference: apply.Difference{Missing: true}, failure: errors.New("it is forbidden")},
	} {
		NewWithT(t).Expect(whyLeft(c.difference, c.failure, next)).To(Equal(want + "; the next attempt is at 03:04:05 UTC"))
	}
}
