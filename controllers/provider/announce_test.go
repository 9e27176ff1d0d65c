package provider

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// TestCheckOthers checks that an installation does not begin if another resource has installed the provider since the
// reconcile began.
func TestCheckOthers(t *testing.T) {
	installed := &v1alpha2.ReleaseStatus{Name: "infrastructure-aws", Namespace: "other"}

	for name, test := range map[string]struct {
		existed bool
		other   *v1alpha2.ReleaseStatus
		reason  string
	}{
		"a first installation":                  {},
		"a first installation, but another has": {other: installed, reason: v1alpha2.MoreThanOneProviderInstanceExistsReason},
		"a later change, whatever another has":  {existed: true, other: installed},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSurroundings()
			other := &v1alpha2.InfrastructureProvider{}
			other.Namespace, other.Name, other.Status.Release = "other", s.provider.Name, test.other

			r := upgrading()
			r.policy.Existed, r.memory.alone = test.existed, time.Now()
			r.installed.Record.AppVersion = r.change.goal.version // providers change one after the other
			r.Preflight = &preflight.Checker{Client: fake.NewClientBuilder().WithScheme(s.cluster(t).Scheme()).
				WithIndex(other, preflight.NameField, func(o client.Object) []string { return []string{o.GetName()} }).
				WithObjects(s.provider, other).Build()}

			g.Expect(resultOf(r.checkOthers(t.Context())).Reason).To(Equal(test.reason))
		})
	}
}
