package view_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

func TestVerdict(t *testing.T) {
	type provider = *v1alpha2.AddonProvider

	condition := func(p provider, kind string, is metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
			Type: kind, Status: is, Reason: reason, Message: message,
		})
	}
	// notReady sets what the operator writes: the verdict without its cause, and with it.
	notReady := func(p provider, kind, reason, text, cause string) {
		condition(p, kind, metav1.ConditionTrue, reason, text)
		condition(p, v1alpha2.ReadyCondition, metav1.ConditionFalse, reason, text+cause)
	}

	const reconciling, stalled = v1alpha2.ReconcilingCondition, v1alpha2.StalledCondition

	installed := func(p provider) { p.Status.InstalledVersion = new("v1.0.0") }

	for name, c := range map[string]struct {
		change func(p provider)
		state  view.State
		want   string
		cause  string
	}{
		"new": {
			change: func(p provider) { p.Status = v1alpha2.ProviderStatus{} },
			state:  view.Waiting, want: "waiting for the operator",
		},
		"changed": {
			change: func(p provider) { installed(p); p.Generation++ },
			state:  view.Waiting, want: "v1.0.0 is installed; waiting for the operator",
		},
		"healthy": {change: installed, state: view.Ready, want: "v1.0.0 is healthy"},
		"paused":  {change: func(p provider) { p.Spec.Paused = true }, state: view.Stopped, want: "v1.0.0 is healthy"},
		"suspended": {
			change: func(p provider) { p.Spec.Suspend = true }, state: view.Stopped, want: "v1.0.0 is healthy",
		},
		"with drift and changes": {
			change: func(p provider) {
				condition(p, v1alpha2.DriftedCondition, metav1.ConditionTrue, "DriftDetected", "Deployment a")
				condition(p, v1alpha2.ChangesPendingCondition, metav1.ConditionTrue, "InputsChanged", "Secret b")
			},
			state: view.Ready, want: "v1.0.0 is healthy; objects differ; changes are pending", cause: "Deployment a",
		},
		"not installed": {
			change: func(p provider) {
				notReady(p, stalled, v1alpha2.MissingVariablesReason, "not installed", ": REGION is missing")
			},
			state: view.Failing, want: "not installed", cause: "REGION is missing",
		},
		"waiting for core": {
			change: func(p provider) {
				notReady(p, reconciling, v1alpha2.WaitingForCoreProviderReadyReason, "not installed yet", ": waiting for core")
			},
			state: view.Waiting, want: "not installed yet", cause: "waiting for core",
		},
		"being upgraded": {
			change: func(p provider) {
				notReady(p, reconciling, v1alpha2.ProgressingReason, "applying v1.1.0", ": Replicas: 0/1")
			},
			state: view.Waiting, want: "applying v1.1.0", cause: "Replicas: 0/1",
		},
		"tried again": {
			change: func(p provider) {
				notReady(p, reconciling, v1alpha2.ProgressingReason, "applying v1.1.0", ": Replicas: 0/1")
				condition(p, v1alpha2.ProviderUpgradedCondition, metav1.ConditionFalse, "Some", "v1.1.0 failed")
			},
			state: view.Failing, want: "applying v1.1.0", cause: "Replicas: 0/1",
		},
		"given up": {
			change: func(p provider) {
				notReady(p, stalled, v1alpha2.TimedOutWaitingForDeploymentReason,
					"v1.0.0 runs; v1.1.0 failed twice, given up", ": no node; to try again, run `a`")
			},
			state: view.Failing, want: "v1.0.0 runs; v1.1.0 failed twice, given up",
			cause: "no node; to try again, run `a`",
		},
		"suspended before an upgrade": {
			change: func(p provider) {
				p.Spec.Suspend = true
				condition(p, v1alpha2.ReadyCondition, metav1.ConditionFalse, v1alpha2.SuspendedReason,
					"v1.0.0 is healthy; v1.1.0 is wanted")
			},
			state: view.Stopped, want: "v1.0.0 is healthy; v1.1.0 is wanted",
		},
		"without a cause": {
			change: func(p provider) { notReady(p, reconciling, v1alpha2.ProgressingReason, "waiting for a", "") },
			state:  view.Waiting, want: "waiting for a",
		},
		"deleted a moment ago": {
			change: func(p provider) {
				installed(p)
				p.DeletionTimestamp, p.Generation = new(metav1.Now()), p.Generation+1
			},
			state: view.Waiting, want: "being removed",
		},
		"removal is blocked": {
			change: func(p provider) {
				p.DeletionTimestamp = new(metav1.Now())
				notReady(p, stalled, v1alpha2.DeletionBlockedReason, "the removal is blocked", ": 1 object exists")
			},
			state: view.Failing, want: "the removal is blocked", cause: "1 object exists",
		},
		"being removed": {
			change: func(p provider) {
				p.DeletionTimestamp = new(metav1.Now())
				notReady(p, reconciling, v1alpha2.InstallFailedReason, "being removed", ": connection refused")
			},
			state: view.Waiting, want: "being removed", cause: "connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha2.AddonProvider{}
			p.Generation, p.Status.ObservedGeneration = 2, 2
			condition(p, v1alpha2.ReadyCondition, metav1.ConditionTrue, v1alpha2.HealthyReason, "v1.0.0 is healthy")
			c.change(p)
			NewWithT(t).Expect(view.VerdictOf(p)).To(Equal(view.Verdict{State: c.state, Text: c.want, Cause: c.cause}))
		})
	}
}
