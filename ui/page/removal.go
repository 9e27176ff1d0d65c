package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/usage"
)

// maxKinds is how many kinds of objects a page names.
const maxKinds = 20

// Removal is what would keep a provider from being removed.
type Removal struct {
	// Blocks are the reasons, in words.
	Blocks []string
	// Kinds are the kinds of objects that exist, and More how many of them are not shown.
	Kinds []UsedKind
	More  int
	// Notes are what is not known.
	Notes []string
	// Nothing is set if it is certain that nothing would.
	Nothing bool
	// Age is how long ago the objects were looked up; empty if they were not.
	Age     string
	Command string
}

// UsedKind are the objects of a kind. The problem is why they could not all be read; empty if they were.
type UsedKind struct{ Count, Name, Examples, Clusters, Problem string }

// ShowRemoval adds what would keep the provider from being removed. The use is nil if objects are not looked up, and
// others are all providers.
func (p *Provider) ShowRemoval(v facts.Provider, use *Use, others []facts.Provider) {
	r := &p.Removal
	r.Command = command(v, "delete", "--dry-run")

	if ready := v.Condition(v1alpha2.ReadyCondition); ready != nil && ready.Reason == v1alpha2.DeletionBlockedReason {
		r.Blocks = append(r.Blocks, "The removal waits: "+ready.Message)
	}

	if v.Suspended {
		r.Blocks = append(r.Blocks, "The provider is suspended.")
	}

	r.addOthers(v, others)

	switch {
	case v.Remote:
		r.Notes = append(r.Notes, "Only the operator looks up the objects in another cluster.")
	case use == nil:
		r.Notes = append(r.Notes, "Objects are not looked up.")
	default:
		r.addUse(p.Frame, use)
	}

	r.Nothing = len(r.Blocks) == 0 && len(r.Kinds) == 0 && len(r.Notes) == 0
}

// addOthers adds the providers that have to be removed before core.
func (r *Removal) addOthers(v facts.Provider, others []facts.Provider) {
	if v.Kind != string(v1alpha2.CoreProviderType) || v.Release == nil {
		return
	}

	var labels []string

	for _, other := range others {
		if other.Release != nil && other.Cluster == v.Cluster && other.Kind != v.Kind {
			labels = append(labels, other.Label)
		}
	}

	if len(labels) == 0 {
		return
	}

	text := "Core is removed last, after " + strings.Join(labels[:min(len(labels), maxLinks)], ", ")
	if more := len(labels) - maxLinks; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	r.Blocks = append(r.Blocks, text+".")
}

// addUse adds the objects that exist, and what is not known of them.
func (r *Removal) addUse(frame Frame, use *Use) {
	r.Age = frame.age(use.Asked)

	switch {
	case use.Problem != "":
		r.Notes = append(r.Notes, "The objects cannot be looked up: "+use.Problem)
	case use.Asked.IsZero():
		r.Notes = append(r.Notes, "The objects are being looked up.")
	}

	for i, k := range use.Kinds {
		if i < maxKinds {
			r.Kinds = append(r.Kinds, newUsedKind(k))
		} else {
			r.More++
		}
	}

	if use.Unseen > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf(
			"You may not list the objects of %s, so there may be more.", plural(use.Unseen, "kind")))
	}
}

func newUsedKind(k usage.Kind) UsedKind {
	kind := UsedKind{
		Name: k.Name, Examples: strings.Join(k.Examples, ", "), Clusters: strings.Join(k.Clusters, ", "),
		Problem: k.Problem,
	}
	if k.Count > 0 {
		kind.Count = fmt.Sprint(k.Count)
	}

	return kind
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
