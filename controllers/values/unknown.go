package values

import (
	"fmt"
	"maps"
	"slices"

	"github.com/agext/levenshtein"
)

// Unknown describes the variables of spec.variables that nothing uses: neither the chart of a version, nor the
// additional manifests. Secrets may hold other keys, so these are not described.
func Unknown(set map[string]string, version string, used []string) []string {
	var all []string

	for _, name := range slices.Sorted(maps.Keys(set)) {
		if name == ImagesVariable || slices.Contains(used, name) {
			continue
		}

		hint := ""
		if similar := MostSimilar(name, used); similar != "" {
			hint = "; did you mean " + similar + "?"
		}

		all = append(all, fmt.Sprintf("spec.variables.%s has no effect: %s has no such variable%s", name, version, hint))
	}

	return all
}

// MostSimilar returns the name that differs from another one in the fewest characters, no more than a third of them;
// empty if there is none.
func MostSimilar(name string, names []string) string {
	const part = 3

	best, least := "", len(name)/part+1

	for _, candidate := range names {
		if distance := levenshtein.Distance(name, candidate, nil); distance < least {
			best, least = candidate, distance
		}
	}

	return best
}
