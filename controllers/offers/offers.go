package offers

import (
	"context"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/fetch"
)

// List returns the versions that a provider's source offers and that its metadata declares a contract for, newest
// first. Tags that have no release yet are left out, and so are versions without a contract: they can never be
// installed.
func List(
	ctx context.Context, sources *fetch.Resolver, provider v1alpha2.Provider,
) ([]v1alpha2.AvailableUpgrade, error) {
	releases, metadata, err := sources.List(ctx, provider)
	if err != nil {
		return nil, err
	}

	var offered []v1alpha2.AvailableUpgrade

	for _, r := range releases {
		if contract, err := bundle.Contract(metadata, r.Name); err == nil {
			offered = append(offered, v1alpha2.AvailableUpgrade{Version: r.Name, Contract: contract})
		}
	}

	return offered, nil
}

// Newer returns the offered versions that are newer than a version, without pre-releases.
func Newer(offered []v1alpha2.AvailableUpgrade, than string) []v1alpha2.AvailableUpgrade {
	installed, err := semver.NewVersion(than)
	if err != nil {
		return nil
	}

	var newer []v1alpha2.AvailableUpgrade

	for _, o := range offered {
		v, err := semver.NewVersion(o.Version)
		if err == nil && v.Prerelease() == "" && v.GreaterThan(installed) {
			newer = append(newer, o)
		}
	}

	return newer
}

// Upgrades returns the newest patch of the installed minor version and the newest version of all, in this order.
// allowed reports whether a contract fits the cluster.
func Upgrades(
	offered []v1alpha2.AvailableUpgrade, installed string, allowed func(contract string) bool,
) []v1alpha2.AvailableUpgrade {
	var upgrades []v1alpha2.AvailableUpgrade

	for _, o := range Newer(offered, installed) {
		if !allowed(o.Contract) {
			continue
		}

		// The versions come newest first, so the first patch ends the search.
		if sameMinor(o.Version, installed) {
			return append([]v1alpha2.AvailableUpgrade{o}, upgrades...)
		}

		if len(upgrades) == 0 {
			upgrades = append(upgrades, o)
		}
	}

	return upgrades
}

// sameMinor reports whether two versions, which are valid, have the same major and minor version.
func sameMinor(a, b string) bool {
	v, w := semver.MustParse(a), semver.MustParse(b)

	return v.Major() == w.Major() && v.Minor() == w.Minor()
}
