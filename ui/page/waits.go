package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
)

// waitsFor returns what a provider waits for, or why it fails; empty if neither. Also a provider that is ready may wait
// before it changes.
func waitsFor(v facts.Provider) string {
	for _, conditionType := range []string{
		v1alpha2.StalledCondition, v1alpha2.PreflightCheckCondition, v1alpha2.ReadyCondition,
	} {
		c := v.Condition(conditionType)
		if c != nil && !facts.IsGood(*c) {
			return cmp.Or(strings.TrimSpace(c.Message), c.Reason)
		}
	}

	if v.Condition(v1alpha2.ReadyCondition) == nil {
		return "the operator has not seen the resource yet"
	}

	return ""
}

// waitsForCore and waitsForOthers report whether a provider waits for core, or for one that it names.
func waitsForCore(v facts.Provider) bool {
	return waitsAs(v, v1alpha2.WaitingForCoreProviderReadyReason)
}

func waitsForOthers(v facts.Provider) bool {
	return waitsAs(v, v1alpha2.WaitingForDependenciesReason) || waitsAs(v, v1alpha2.DependencyCycleReason)
}

func waitsAs(v facts.Provider, reason string) bool {
	return slices.ContainsFunc([]string{v1alpha2.PreflightCheckCondition, v1alpha2.ReadyCondition}, func(t string) bool {
		c := v.Condition(t)
		return c != nil && c.Reason == reason && !facts.IsGood(*c)
	})
}

// clustersOf returns the Clusters that the objects of a provider belong to, sorted.
func clustersOf(use Use) []string {
	found := map[string]bool{}

	for _, k := range use.Kinds {
		for _, name := range k.Clusters {
			found[name] = true
		}
	}

	return slices.Sorted(maps.Keys(found))
}

// objectsOf returns the number of the objects of a provider.
func objectsOf(use Use) int64 {
	var total int64
	for _, k := range use.Kinds {
		total += k.Count
	}

	return total
}

// usesText returns what keeps a provider from being removed, in words; empty if nothing is known to.
func usesText(use Use) string {
	clusters := clustersOf(use)

	switch n := objectsOf(use); {
	case use.Problem != "":
		return "it is not known whether it is in use: " + shorten(use.Problem)
	case n == 0:
		return ""
	case len(clusters) == 0:
		return plural(int(n), "object") + " of its kinds"
	case len(clusters) > maxLinks:
		return fmt.Sprintf("%s, of Clusters %s and others",
			plural(int(n), "object"), strings.Join(clusters[:maxLinks], ", "))
	case len(clusters) == 1:
		return plural(int(n), "object") + ", of Cluster " + clusters[0]
	default:
		return plural(int(n), "object") + ", of Clusters " + strings.Join(clusters, ", ")
	}
}

// plural returns a number of things, such as "2 objects".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}

	return fmt.Sprintf("%d %ss", n, thing)
}
