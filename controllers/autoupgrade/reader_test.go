package autoupgrade

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// change changes a provider.
type change func(v1alpha2.Provider)

// upgraded gives a provider an automatic upgrade to v1.13.6.
func upgraded(result v1alpha2.UpgradeResult) change {
	return func(p v1alpha2.Provider) {
		p.GetStatus().AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{
			Last: &v1alpha2.AutomaticUpgrade{Version: "v1.13.6", Result: result},
		}
	}
}

// pending gives a provider an automatic upgrade that waits.
func pending(p v1alpha2.PendingUpgrade) change {
	return func(provider v1alpha2.Provider) {
		provider.GetStatus().AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{Pending: &p}
	}
}

// is sets a condition of a provider.
func is(condition string, status metav1.ConditionStatus, reason string) change {
	return func(p v1alpha2.Provider) {
		conditions.Set(p, &metav1.Condition{Type: condition, Status: status, Reason: reason})
	}
}

func newCore(changes ...change) *v1alpha2.CoreProvider {
	installed, contract := "v1.13.5", "v1beta1"
	p := &v1alpha2.CoreProvider{}
	p.Spec.Version = "~1.13"
	p.Status.InstalledVersion, p.Status.Contract = &installed, &contract

	for _, c := range changes {
		c(p)
	}

	return p
}

// halts are changes after which an upgrade does not continue by itself.
var halts = map[string]change{
	"being deleted": func(p v1alpha2.Provider) { p.SetDeletionTimestamp(&metav1.Time{Time: noon}) },
	"suspended":     func(p v1alpha2.Provider) { p.GetSpec().Suspend = true },
	"paused":        func(p v1alpha2.Provider) { p.GetSpec().Paused = true },
	"rolled back by its resource": func(p v1alpha2.Provider) {
		p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: new(int64(1))}
	},
	"held, and healthy":         is(v1alpha2.ReadyCondition, metav1.ConditionTrue, v1alpha2.ExternalChangeReason),
	"uninstalled by helm":       is(v1alpha2.ReadyCondition, metav1.ConditionFalse, v1alpha2.ExternalChangeReason),
	"in a cluster out of reach": is(v1alpha2.ReadyCondition, metav1.ConditionFalse, v1alpha2.ClusterUnreachableReason),
	"refused": is(v1alpha2.PreflightCheckCondition, metav1.ConditionFalse,
		v1alpha2.MoreThanOneProviderInstanceExistsReason),
	"stalled": is(v1alpha2.StalledCondition, metav1.ConditionTrue, v1alpha2.InstallFailedReason),
}

func TestUpgradeOfCoreMayFollow(t *testing.T) {
	g := NewWithT(t)
	g.Expect(mayFollow(newCore())).To(BeTrue())
	g.Expect(mayFollow(newCore(upgraded(v1alpha2.UpgradeSucceeded)))).To(BeTrue())
	g.Expect(mayFollow(newCore(upgraded(v1alpha2.UpgradeProgressing)))).To(BeFalse(), "it is in progress")
	g.Expect(mayFollow(&v1alpha2.CoreProvider{})).To(BeFalse(), "it is not installed")

	for name, halt := range halts {
		g.Expect(mayFollow(newCore(halt))).To(BeFalse(), "it is %s", name)
	}
}

func TestUpgradeOfCore(t *testing.T) {
	opening := decide.Opening{From: noon}
	plain := decide.CoreUpgrade{
		Possible: true, Earliest: noon,
		Choice: decide.Choice{
			Range: "~1.13", Mode: v1alpha2.UpgradePatch, Installed: "v1.13.5", Contract: "v1beta1",
		},
	}
	with := func(set func(*decide.CoreUpgrade)) decide.CoreUpgrade {
		found := plain
		set(&found)

		return found
	}
	until := func(t time.Time) change {
		return pending(v1alpha2.PendingUpgrade{NotBefore: &metav1.Time{Time: t}})
	}

	for name, c := range map[string]struct {
		change change
		want   decide.CoreUpgrade
	}{
		"the first one":       {func(v1alpha2.Provider) {}, plain},
		"after one":           {upgraded(v1alpha2.UpgradeSucceeded), plain},
		"one that has waited": {until(noon.Add(-time.Hour)), plain},
		"after one that failed": {
			upgraded(v1alpha2.UpgradeFailed), with(func(u *decide.CoreUpgrade) { u.Choice.GivenUp = []string{"v1.13.6"} }),
		},
		"one that a check prevents": {
			pending(v1alpha2.PendingUpgrade{Version: "v1.13.6", Blocked: true}),
			with(func(u *decide.CoreUpgrade) { u.Prevented = "v1.13.6" }),
		},
		"one that waits": {
			until(noon.Add(time.Hour)), with(func(u *decide.CoreUpgrade) { u.Earliest = noon.Add(time.Hour) }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := upgradeOfCore(newCore(c.change), &Policy{Mode: v1alpha2.UpgradePatch}, opening)
			NewWithT(t).Expect(found).To(Equal(c.want))
		})
	}
}

func TestNothingIsReadWithoutAPolicy(t *testing.T) {
	seen, err := (&Reader{}).Read(&v1alpha2.InfrastructureProvider{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(seen).To(BeZero())
}
