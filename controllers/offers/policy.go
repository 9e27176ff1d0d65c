package offers

import (
	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/controllers/problem"
)

// Policy is a valid spec.upgradePolicy that allows automatic upgrades.
type Policy struct {
	// Mode is Patch or Minor.
	Mode v1alpha2.UpgradeMode
	// Window is when upgrades may start; nil for at any time.
	Window *Window
}

// invalid returns the problem of a spec.upgradePolicy that cannot be used.
func invalid(format string, args ...any) error {
	return problem.Refuse(v1alpha2.InvalidUpgradePolicyReason, format, args...)
}

// Automatic reports whether a resource allows automatic upgrades.
func Automatic(spec *v1alpha2.ProviderSpec) bool {
	policy := spec.UpgradePolicy
	return policy != nil && policy.Mode != "" && policy.Mode != v1alpha2.UpgradeManual
}

// ParsePolicy returns the policy of a resource, nil if it allows no automatic upgrades. The error is a
// *problem.Error.
func ParsePolicy(spec *v1alpha2.ProviderSpec) (*Policy, error) {
	if !Automatic(spec) {
		return nil, nil
	}

	if spec.Version == "" || ranges.IsExact(spec.Version) {
		return nil, invalid("spec.version must be a range such as ~1.13 for spec.upgradePolicy.mode %s",
			spec.UpgradePolicy.Mode)
	}

	policy := &Policy{Mode: spec.UpgradePolicy.Mode}
	if spec.UpgradePolicy.Window == nil {
		return policy, nil
	}

	window, err := parseWindow(*spec.UpgradePolicy.Window)
	policy.Window = window

	return policy, err
}
