// Package autoupgrade reads what automatic upgrades depend on: spec.upgradePolicy, and what the source offers. Package
// decide selects the version.
//
// Everything is derived from Helm's storage, the source and the resource, so a restarted operator decides as the one
// before it. An automatic upgrade is recorded with its revision as a request of its own, state.Request.Automatic. If
// the upgrade fails and is rolled back, the version before it is what is asked for again. The failed version is given
// up until a user asks for something else.
package autoupgrade

import (
	"fmt"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
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

// Enabled reports whether a resource allows automatic upgrades.
func Enabled(spec *v1alpha2.ProviderSpec) bool {
	policy := spec.UpgradePolicy
	return policy != nil && policy.Mode != "" && policy.Mode != v1alpha2.UpgradeManual
}

// Parse returns the policy of a resource, nil if it allows no automatic upgrades. The error is a *PolicyError.
func Parse(spec *v1alpha2.ProviderSpec) (*Policy, error) {
	if !Enabled(spec) {
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

	window, err := ParseWindow(*spec.UpgradePolicy.Window)
	policy.Window = window

	return policy, err
}
