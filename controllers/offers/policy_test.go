package offers

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestParsePolicy(t *testing.T) {
	g := NewWithT(t)
	parse := func(version string, policy *v1alpha2.UpgradePolicy) (*Policy, error) {
		return ParsePolicy(&v1alpha2.ProviderSpec{Version: version, UpgradePolicy: policy})
	}

	for _, off := range []*v1alpha2.UpgradePolicy{nil, {}, {Mode: v1alpha2.UpgradeManual}} {
		policy, err := parse("v1.0.0", off)
		g.Expect(policy, err).To(BeNil())
	}

	for _, version := range []string{"", "v1.0.0", "1.0.0-rc.1"} {
		_, err := parse(version, &v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradePatch})
		g.Expect(err).To(MatchError("spec.version must be a range such as ~1.13 for spec.upgradePolicy.mode Patch"))
	}

	policy, err := parse("~1.0", &v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradeMinor})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*policy).To(Equal(Policy{Mode: v1alpha2.UpgradeMinor}))

	now := time.Now()
	g.Expect(policy.opening(now).Includes(now)).To(BeTrue(), "without a window it is always open")
}
