package offers

import (
	"fmt"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
)

// Policy is a valid spec.upgradePolicy that allows automatic upgrades.
type Policy struct {
	// Mode is Patch or Minor.
	Mode v1alpha2.UpgradeMode
	// Window is when upgrades may start; nil for at any time.
	Window *Window
}

// PolicyError reports a spec.upgradePolicy that cannot be used.
type PolicyError struct {
	// Field of the resource that is wrong.
	Field string
	// Problem with it, and how to fix it.
	Problem string
}

func (e *PolicyError) Error() string { return e.Field + " " + e.Problem }

// Automatic reports whether a resource allows automatic upgrades.
func Automatic(spec *v1alpha2.ProviderSpec) bool {
	policy := spec.UpgradePolicy
	return policy != nil && policy.Mode != "" && policy.Mode != v1alpha2.UpgradeManual
}

// ParsePolicy returns the policy of a resource, nil if it allows no automatic upgrades. The error is a *PolicyError.
func ParsePolicy(spec *v1alpha2.ProviderSpec) (*Policy, error) {
	if !Automatic(spec) {
		return nil, nil
	}

	if spec.Version == "" || ranges.IsExact(spec.Version) {
		return nil, &PolicyError{
			Field:   "spec.version",
			Problem: fmt.Sprintf("must be a range such as ~1.13 for spec.upgradePolicy.mode %s", spec.UpgradePolicy.Mode),
		}
	}

	policy := &Policy{Mode: spec.UpgradePolicy.Mode}
	if spec.UpgradePolicy.Window == nil {
		return policy, nil
	}

	window, err := parseWindow(*spec.UpgradePolicy.Window)
	policy.Window = window

	return policy, err
}
