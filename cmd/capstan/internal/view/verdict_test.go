package view_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// failed returns the revision of an attempt that failed.
func failed(number int64, version string, request v1alpha2.RevisionRequest) v1alpha2.ReleaseRevision {
	return v1alpha2.ReleaseRevision{
		Revision: number, Version: version, Status: "failed", Healthy: new(false), Request: &request,
	}
}

func deployed(number int64, version string, healthy bool) v1alpha2.ReleaseRevision {
	return v1alpha2.ReleaseRevision{Revision: number, Version: version, Status: "deployed", Healthy: &healthy}
}

func TestVerdict(t *testing.T) {
	type provider = *v1alpha2.AddonProvider

	condition := func(p provider, kind string, is metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
			Type: kind, Status: is, Reason: reason, Message: message,
		})
	}
	notReady := func(p provider, reason, message string) {
		condition(p, v1alpha2.ReadyCondition, metav1.ConditionFalse, reason, message)
	}
	stalled := func(p provider, reason, message string) {
		notReady(p, reason, message)
		condition(p, v1alpha2.StalledCondition, metav1.ConditionTrue, reason, message)
	}
	runs := func(p provider) { p.Status.History = []v1alpha2.ReleaseRevision{deployed(1, "v1.0.0", true)} }
	upgrade := func(p provider) { p.Spec.Version, p.Status.DesiredVersion = "v1.1.0", "v1.1.0" }
	request := v1alpha2.RevisionRequest{Generation: 2}

	for name, c := range map[string]struct {
		change func(p provider)
		state  view.State
		want   string
	}{
		"new": {func(p provider) { p.Status = v1alpha2.ProviderStatus{} }, view.Waiting, "waiting for the operator"},
		"changed": {
			func(p provider) { runs(p); p.Generation++ }, view.Waiting, "v1.0.0 runs; waiting for the operator",
		},
		"healthy": {runs, view.Ready, "v1.0.0 is healthy"},
		"held by a rollback": {
			func(p provider) {
				runs(p)
				p.Spec.Release = &v1alpha2.ReleaseSpec{RollbackTo: new(int64(3))}
			}, view.Ready, "v1.0.0 is healthy, held at revision 3 by a rollback",
		},
		"held for another program": {
			func(p provider) {
				runs(p)
				condition(p, v1alpha2.ReadyCondition, metav1.ConditionTrue, v1alpha2.ExternalChangeReason, "by helm")
			}, view.Ready, "v1.0.0 is healthy, held as another program made it: by helm",
		},
		"paused and suspended": {
			func(p provider) {
				runs(p)
				p.Spec.Paused, p.Spec.Suspend = true, true
			}, view.Stopped, "v1.0.0 is paused, suspended",
		},
		"with drift and changes": {
			func(p provider) {
				runs(p)
				condition(p, v1alpha2.DriftedCondition, metav1.ConditionTrue, "DriftDetected", "Deployment a")
				condition(p, v1alpha2.ChangesPendingCondition, metav1.ConditionTrue, "InputsChanged", "Secret b")
			}, view.Ready, "v1.0.0 is healthy, objects differ, changes are pending: Deployment a",
		},
		"not installed": {
			func(p provider) { stalled(p, v1alpha2.MissingVariablesReason, "REGION is missing") },
			view.Failing, "not installed: REGION is missing",
		},
		"waiting for core": {
			func(p provider) { notReady(p, v1alpha2.WaitingForCoreProviderReadyReason, "waiting for core") },
			view.Waiting, "not installed: waiting for core",
		},
		"being installed": {
			func(p provider) {
				notReady(p, v1alpha2.ProgressingReason, "Replicas: 0/1")
				p.Status.History = []v1alpha2.ReleaseRevision{deployed(1, "v1.0.0", false)}
			}, view.Waiting, "applying v1.0.0: Replicas: 0/1",
		},
		"being upgraded": {
			func(p provider) {
				upgrade(p)
				runs(p)
				notReady(p, v1alpha2.ProgressingReason, "checking")
			}, view.Waiting, "v1.0.0 runs; applying v1.1.0: checking",
		},
		"upgrade waits": {
			func(p provider) {
				upgrade(p)
				runs(p)
				notReady(p, v1alpha2.WaitingForDependenciesReason, "waiting for addon-b")
			}, view.Waiting, "v1.0.0 runs; v1.1.0 is not applied: waiting for addon-b",
		},
		"upgrade is refused": {
			func(p provider) {
				upgrade(p)
				runs(p)
				stalled(p, v1alpha2.VersionNotFoundReason, "no such version")
			}, view.Failing, "v1.0.0 runs; v1.1.0 is not applied: no such version",
		},
		"change is refused": {
			func(p provider) {
				runs(p)
				stalled(p, v1alpha2.ComponentsPatchErrorReason, "it matches no object")
			}, view.Failing, "v1.0.0 runs; a change is not applied: it matches no object",
		},
		"upgrade failed, and is tried again": {
			func(p provider) {
				upgrade(p)
				notReady(p, v1alpha2.TimedOutWaitingForDeploymentReason, "v1.1.0 failed: no node")
				p.Status.History = []v1alpha2.ReleaseRevision{
					deployed(3, "v1.0.0", true), failed(2, "v1.1.0", request), deployed(1, "v1.0.0", true),
				}
			}, view.Failing, "v1.0.0 runs; v1.1.0 failed, tried again: no node",
		},
		"upgrade failed, and is given up": {
			func(p provider) {
				upgrade(p)
				stalled(p, v1alpha2.TimedOutWaitingForDeploymentReason, "v1.1.0 failed: no node")
				p.Status.History = []v1alpha2.ReleaseRevision{
					deployed(6, "v1.0.0", true), failed(5, "v1.1.0", request), failed(4, "v1.1.0", request),
					failed(3, "v1.1.0", v1alpha2.RevisionRequest{Generation: 2, RequestedAt: "before"}),
					failed(2, "v1.1.0", v1alpha2.RevisionRequest{Generation: 1}), deployed(1, "v1.0.0", true),
				}
			}, view.Failing, "v1.0.0 runs; v1.1.0 failed twice, given up: no node",
		},
		"is tried again after a request": {
			func(p provider) {
				upgrade(p)
				notReady(p, v1alpha2.ProgressingReason, "Replicas: 0/1")
				p.Status.History = []v1alpha2.ReleaseRevision{
					deployed(4, "v1.1.0", false), deployed(3, "v1.0.0", true), failed(2, "v1.1.0", request),
				}
				p.Status.History[0].Request = &v1alpha2.RevisionRequest{Generation: 2, RequestedAt: "now"}
			}, view.Waiting, "applying v1.1.0: Replicas: 0/1",
		},
		"failed without a rollback": {
			func(p provider) {
				stalled(p, v1alpha2.InstallFailedReason, "v1.0.0 failed: refused")
				p.Status.History = []v1alpha2.ReleaseRevision{
					failed(3, "v1.0.0", request), failed(2, "v1.0.0", request), failed(1, "v1.0.0", request),
				}
			}, view.Failing, "v1.0.0 failed 3 times, given up: refused",
		},
		"not healthy any more": {
			func(p provider) {
				runs(p)
				notReady(p, v1alpha2.UnhealthyReason, "Replicas: 0/1")
			}, view.Failing, "v1.0.0 is not healthy: Replicas: 0/1",
		},
		"suspended before an upgrade": {
			func(p provider) {
				upgrade(p)
				runs(p)
				p.Spec.Suspend = true
				notReady(p, v1alpha2.SuspendedReason, "v1.1.0 waits to be installed")
			}, view.Stopped, "v1.0.0 runs, suspended: v1.1.0 waits to be installed",
		},
		"deleted a moment ago": {
			func(p provider) {
				runs(p)
				p.DeletionTimestamp, p.Generation = new(metav1.Now()), p.Generation+1
			}, view.Waiting, "being removed",
		},
		"removal is blocked": {
			func(p provider) {
				p.DeletionTimestamp = new(metav1.Now())
				notReady(p, v1alpha2.DeletionBlockedReason, "1 object exists")
			}, view.Failing, "removal is blocked: 1 object exists",
		},
		"being removed": {
			func(p provider) {
				p.DeletionTimestamp = new(metav1.Now())
				notReady(p, v1alpha2.DeletingReason, "deleting objects")
			}, view.Waiting, "being removed: deleting objects",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha2.AddonProvider{}
			p.Generation, p.Status.ObservedGeneration = 2, 2
			p.Spec.Version, p.Status.DesiredVersion = "v1.0.0", "v1.0.0"
			condition(p, v1alpha2.ReadyCondition, metav1.ConditionTrue, v1alpha2.HealthyReason, "healthy")
			c.change(p)

			verdict := view.VerdictOf(p)
			g := NewWithT(t)
			g.Expect(verdict.String()).To(Equal(c.want))
			g.Expect(verdict.State).To(Equal(c.state))
		})
	}
}
