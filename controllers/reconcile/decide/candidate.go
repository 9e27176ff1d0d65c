package decide

import (
	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
)

// Choice describes which version may follow an installed one.
type Choice struct {
	// Range is spec.version.
	Range string
	// Mode is Patch or Minor.
	Mode v1alpha2.UpgradeMode
	// Installed version, with its contract.
	Installed, Contract string
	// GivenUp are versions that failed. Only what is newer than all of them is chosen.
	GivenUp []string
}

// Best returns the newest version on offer that may follow; empty if there is none.
func (c Choice) Best(offered []v1alpha2.AvailableUpgrade) string {
	installed, err := semver.NewVersion(c.Installed)
	if err != nil {
		return ""
	}

	matches, err := ranges.Parse(c.Range)
	if err != nil {
		return ""
	}

	floor := installed

	for _, name := range c.GivenUp {
		if v, err := semver.NewVersion(name); err == nil && v.GreaterThan(floor) {
			floor = v
		}
	}

	var (
		best     string
		bestSeen = floor
	)

	for _, offer := range offered {
		v, err := semver.NewVersion(offer.Version)

		switch {
		case err != nil, v.Prerelease() != "", v.Metadata() != "":
		case offer.Contract != c.Contract, !matches(v), !v.GreaterThan(bestSeen):
		case v.Major() != installed.Major(), c.Mode != v1alpha2.UpgradeMinor && v.Minor() != installed.Minor():
		default:
			best, bestSeen = offer.Version, v
		}
	}

	return best
}
