package managers

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Step is the version of each provider, by label, at one moment.
type Step map[string]string

// Steps returns one step for each minor version that any provider has, oldest first, except those in which no provider
// changes. Each provider has its newest version up to that minor version, or its oldest one if there is none. There are
// no steps if a provider has no version at hand.
func (r Releases) Steps() []Step {
	var minors []*semver.Version

	for _, label := range Labels {
		if len(r[label]) == 0 {
			return nil
		}

		for _, version := range r[label] {
			v := semver.MustParse(version)
			minors = append(minors, semver.New(v.Major(), v.Minor(), 0, "", ""))
		}
	}

	slices.SortFunc(minors, (*semver.Version).Compare)
	minors = slices.CompactFunc(minors, (*semver.Version).Equal)

	var steps []Step

	for _, minor := range minors {
		step := Step{}
		for _, label := range Labels {
			step[label] = newestUpTo(r[label], minor)
		}

		if n := len(steps); n == 0 || len(steps[n-1].Changes(step)) > 0 {
			steps = append(steps, step)
		}
	}

	return steps
}

// String returns the version of all providers, or that of each if they differ.
func (s Step) String() string {
	core := s[Labels[0]]
	each := make([]string, 0, len(Labels))
	same := true

	for _, label := range Labels {
		each = append(each, label+" "+s[label])
		same = same && s[label] == core
	}

	if same {
		return core
	}

	return strings.Join(each, ", ")
}

// Changes returns the labels of the providers that have another version in the next step.
func (s Step) Changes(next Step) []string {
	var changed []string

	for _, label := range Labels {
		if s[label] != next[label] {
			changed = append(changed, label)
		}
	}

	return changed
}

// newestUpTo returns the newest of the versions, oldest first, whose minor version is not newer than that of limit.
func newestUpTo(versions []string, limit *semver.Version) string {
	newest := versions[0]

	for _, version := range versions {
		if v := semver.MustParse(version); !semver.New(v.Major(), v.Minor(), 0, "", "").GreaterThan(limit) {
			newest = version
		}
	}

	return newest
}
