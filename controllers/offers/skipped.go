package offers

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/controllers/object"
)

// SkippedMinors returns the minor versions, such as "v1.26", between two versions of a provider that an upgrade skips,
// oldest first. A downgrade skips none.
func SkippedMinors(from, to string, minors []*semver.Version) []string {
	installed, err := semver.NewVersion(from)
	if err != nil {
		return nil
	}

	wanted, err := semver.NewVersion(to)
	if err != nil {
		return nil
	}

	after, before := minorOf(installed), minorOf(wanted)

	skipped := slices.Clone(minors)
	for i, v := range skipped {
		skipped[i] = minorOf(v)
	}

	skipped = slices.DeleteFunc(skipped, func(v *semver.Version) bool {
		return !v.GreaterThan(after) || !v.LessThan(before)
	})

	slices.SortFunc(skipped, (*semver.Version).Compare)

	var names []string
	for _, v := range skipped {
		names = append(names, fmt.Sprintf("v%d.%d", v.Major(), v.Minor()))
	}

	return slices.Compact(names)
}

// minorOf returns the first version of the minor version that a version is of.
func minorOf(v *semver.Version) *semver.Version { return semver.New(v.Major(), v.Minor(), 0, "", "") }

// maxSkipped bounds how many minor versions a message names.
const maxSkipped = 5

// SkipsMessage warns of the minor versions that an upgrade skips; empty if it skips none.
func SkipsMessage(to string, skipped []string) string {
	if len(skipped) == 0 {
		return ""
	}

	return fmt.Sprintf("%s skips %s: a provider may need each minor version; see its release notes, or upgrade to "+
		"one after the other", to, object.List(skipped, maxSkipped))
}
