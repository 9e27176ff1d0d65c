package upgrades

import (
	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Answered reports whether the source has said what it offers.
func (k Known) Answered() bool { return k.offer != nil }

// Offered returns the versions that the source offers and that its metadata declares a contract for.
func (k Known) Offered() []v1alpha2.AvailableUpgrade {
	if k.offer == nil {
		return nil
	}

	var offered []v1alpha2.AvailableUpgrade

	for _, r := range k.offer.versions {
		if contract, err := k.offer.metadata.Contract(r.Name); err == nil {
			offered = append(offered, v1alpha2.AvailableUpgrade{Version: r.Name, Contract: contract})
		}
	}

	return offered
}

// Available returns the newest patch of the installed minor version and the newest version of all,
// pre-releases excluded, in this order. allowed reports whether a contract fits the cluster.
func (k Known) Available(installed *string, allowed func(contract string) bool) []v1alpha2.AvailableUpgrade {
	if installed == nil || k.offer == nil {
		return nil
	}

	current, err := semver.NewVersion(*installed)
	if err != nil {
		return nil
	}

	var upgrades []v1alpha2.AvailableUpgrade

	for _, r := range k.offer.versions {
		v, err := semver.NewVersion(r.Name)
		if err != nil || v.Prerelease() != "" || !v.GreaterThan(current) {
			continue
		}

		contract, err := k.offer.metadata.Contract(r.Name)
		if err != nil || !allowed(contract) {
			continue
		}

		upgrade := v1alpha2.AvailableUpgrade{Version: r.Name, Contract: contract}

		// The versions come newest first, so the first patch ends the search.
		if v.Major() == current.Major() && v.Minor() == current.Minor() {
			return append([]v1alpha2.AvailableUpgrade{upgrade}, upgrades...)
		}

		if len(upgrades) == 0 {
			upgrades = append(upgrades, upgrade)
		}
	}

	return upgrades
}
