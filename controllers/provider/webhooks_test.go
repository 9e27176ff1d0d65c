package provider

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/webhooks"
)

// distrusted returns what was found out about webhooks that lack their CA.
var distrusted = trust{
	known: true, problem: "webhooks have no CA",
	missing: []string{"that of Secret capa-system/cert is missing in ValidatingWebhookConfiguration capa"},
}

// trusted makes a resource have said of its webhooks, a while ago.
func trusted(r *run, status metav1.ConditionStatus, reason string, ago time.Duration) {
	r.provider.GetStatus().Conditions = []metav1.Condition{{
		Type: v1alpha2.WebhooksTrustedCondition, Status: status, Reason: reason,
		LastTransitionTime: metav1.NewTime(now.Add(-ago)),
	}}
}

// TestLostCA: webhooks that had their CA until a revision was created keep it from being healthy. Revisions of this
// test were created a minute ago.
func TestLostCA(t *testing.T) {
	for name, test := range map[string]struct {
		revision int
		before   func(*run)
		reason   string
		since    time.Time
		gates    bool
	}{
		"an upgrade": {2, func(r *run) {
			trusted(r, metav1.ConditionTrue, v1alpha2.CAInjectedReason, time.Hour)
		}, v1alpha2.CALostReason, now, true},
		"an upgrade that began with it": {2, func(r *run) {
			trusted(r, metav1.ConditionFalse, v1alpha2.CALostReason, 50*time.Second)
		}, v1alpha2.CALostReason, now.Add(-50 * time.Second), true},
		"an upgrade that began without": {2, func(r *run) {
			trusted(r, metav1.ConditionFalse, v1alpha2.CALostReason, 70*time.Second)
		}, v1alpha2.CALostReason, now.Add(-70 * time.Second), false},
		"webhooks that never had it": {2, func(r *run) {
			trusted(r, metav1.ConditionFalse, v1alpha2.CAMissingReason, 50*time.Second)
		}, v1alpha2.CAMissingReason, now.Add(-50 * time.Second), false},
		"the first webhooks": {2, func(*run) {}, v1alpha2.CAMissingReason, now, false},
		"an installation": {1, func(r *run) {
			trusted(r, metav1.ConditionTrue, v1alpha2.CAInjectedReason, time.Hour)
		}, v1alpha2.CALostReason, now, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := judgedRun(justMade(test.revision, v1alpha2.RevisionDeployed, wanted))
			test.before(r)

			found := r.since(distrusted)
			g.Expect(found.reason).To(Equal(test.reason))
			g.Expect(found.since).To(BeTemporally("==", test.since))
			g.Expect(found.gates).To(Equal(test.gates))

			r.installed.trust = found
			g.Expect(r.installed.healthy()).To(Equal(!test.gates))
			g.Expect(r.installed.works()).To(BeFalse())
			g.Expect(r.installed.unhealthy()).To(Equal(found.cause()))

			written := &conditions{list: r.provider.GetConditions(), now: now.Add(time.Minute)}
			r.writeTrusted(written)
			g.Expect(written.get(v1alpha2.WebhooksTrustedCondition).LastTransitionTime.Time).To(
				BeTemporally("==", test.since), "it is as old as the problem")
		})
	}
}

// TestCAWithoutSecret: while the Secret does not exist, webhooks lack what they lacked before.
func TestCAWithoutSecret(t *testing.T) {
	g := NewWithT(t)
	r := judgedRun(justMade(2, v1alpha2.RevisionDeployed, wanted))
	trusted(r, metav1.ConditionTrue, v1alpha2.CAInjectedReason, time.Hour)
	g.Expect(r.since(trust{})).To(Equal(trust{}))

	trusted(r, metav1.ConditionFalse, v1alpha2.CALostReason, 0)
	r.provider.GetStatus().Conditions[0].Message = distrusted.problem + ": " + distrusted.missing[0]

	found := r.since(trust{})
	g.Expect(found.cause()).To(HavePrefix(distrusted.problem + ": " + distrusted.missing[0] + " since "))
	g.Expect(found.gates).To(BeTrue())
	g.Expect(r.since(trust{none: true}).problem).To(BeEmpty(), "nothing is injected any longer")
}

// TestCompareCAs: what webhooks must have is what the Secret has.
func TestCompareCAs(t *testing.T) {
	secret := types.NamespacedName{Namespace: "capa-system", Name: "cert"}
	with := func(cas ...string) webhooks.Injected {
		o := object.Key{Name: "capa"}
		o.Kind = "ValidatingWebhookConfiguration"

		return webhooks.Injected{Object: o, CAs: cas}
	}
	lack := func(problem string) trust {
		found := distrusted
		found.problem = problem

		return found
	}
	known := func(r *run) { trusted(r, metav1.ConditionTrue, v1alpha2.CAInjectedReason, time.Hour) }

	for name, test := range map[string]struct {
		before   func(*run)
		injected []webhooks.Injected
		want     trust
	}{
		"all have it":                     {known, []webhooks.Injected{with("a"), with("a", "b")}, trust{known: true}},
		"one has none":                    {known, []webhooks.Injected{with("a"), with()}, lack("webhooks have no CA")},
		"one has another":                 {known, []webhooks.Injected{with("b")}, lack("webhooks have an outdated CA")},
		"one has none at first":           {func(*run) {}, []webhooks.Injected{with()}, lack("webhooks have no CA")},
		"another program injects another": {func(*run) {}, []webhooks.Injected{with("b")}, trust{none: true}},
	} {
		t.Run(name, func(t *testing.T) {
			r := judgedRun(justMade(1, v1alpha2.RevisionDeployed, wanted))
			test.before(r)
			NewWithT(t).Expect(r.compareCAs(secret, webhooks.CAs{"a"}, test.injected)).To(Equal(test.want))
		})
	}
}

// TestWriteTrusted: what is not known leaves the condition as it is, and what cannot be known removes it.
func TestWriteTrusted(t *testing.T) {
	for name, test := range map[string]struct {
		found trust
		want  metav1.ConditionStatus
	}{
		"not found out":       {trust{}, metav1.ConditionTrue},
		"nothing is injected": {trust{none: true}, ""},
		"all have their CA":   {trust{known: true}, metav1.ConditionTrue},
		"no CA":               {distrusted, metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			r := judgedRun(justMade(1, v1alpha2.RevisionDeployed, wanted))
			trusted(r, metav1.ConditionTrue, v1alpha2.CAInjectedReason, time.Hour)
			r.installed.trust = r.since(test.found)

			written := &conditions{list: r.provider.GetConditions(), now: now}
			r.writeTrusted(written)
			NewWithT(t).Expect(written.get(v1alpha2.WebhooksTrustedCondition).Status).To(Equal(test.want))
		})
	}
}
