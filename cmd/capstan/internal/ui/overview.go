package ui

import (
	"net/url"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// Overview is the page with all providers.
type Overview struct {
	Frame

	Filter Filter
	Counts []Count
	Groups []Group
	// Shown and Total are numbers of providers.
	Shown, Total int
	// Types, States and Namespaces are what the filter offers.
	Types, States, Namespaces []Choice
}

// Filter selects providers. It is in the URL of the page.
type Filter struct{ Search, Type, State, Namespace string }

// maxFilter limits a value of a filter in bytes; all names of Kubernetes are shorter.
const maxFilter = 256

// newFilter reads a filter from the query of a URL.
func newFilter(query url.Values) Filter {
	get := func(name string) string {
		value := query.Get(name)
		return strings.ToValidUTF8(value[:min(len(value), maxFilter)], "")
	}

	return Filter{Search: get("search"), Type: get("type"), State: get("state"), Namespace: get("namespace")}
}

// matches reports whether a filter selects a provider. The search is for parts of what its card shows.
func (f Filter) matches(c Card) bool {
	if f.Type != "" && f.Type != c.Kind ||
		f.State != "" && f.State != c.State() ||
		f.Namespace != "" && f.Namespace != c.Namespace {
		return false
	}

	text := strings.ToLower(strings.Join([]string{c.Label, c.Kind, c.Namespace, c.Version, c.StateText()}, " "))

	for word := range strings.FieldsSeq(strings.ToLower(f.Search)) {
		if !strings.Contains(text, word) {
			return false
		}
	}

	return true
}

// Count is the number of providers in a state, with a link to them.
type Count struct {
	State  string
	Number int
	Path   string
	// Selected means that only providers in this state are shown.
	Selected bool
}

// Group are cards with a heading.
type Group struct {
	ID, Title string
	Cards     []Card
}

// newOverview returns the page with the providers that a filter selects: first those that fail, then the others by
// type.
func newOverview(frame Frame, filter Filter, providers []view.Provider) *Overview {
	o := &Overview{Frame: frame, Filter: filter, Total: len(providers)}
	failing := Group{ID: "group-failing", Title: "Failing"}
	groups := map[string]*Group{}
	counts := map[string]int{}
	namespaces := map[string]bool{}

	for _, v := range providers {
		card := Card{v, frame}
		state := card.State()
		counts[state]++
		namespaces[v.Namespace] = true

		if !filter.matches(card) {
			continue
		}

		o.Shown++

		if state == stateFailing {
			failing.Cards = append(failing.Cards, card)
			continue
		}

		if groups[v.Kind] == nil {
			groups[v.Kind] = &Group{ID: "group-" + v.Kind, Title: card.TypeName()}
		}

		groups[v.Kind].Cards = append(groups[v.Kind].Cards, card)
	}

	if len(failing.Cards) > 0 {
		o.Groups = append(o.Groups, failing)
	}

	for _, t := range v1alpha2.ProviderTypes() {
		if group := groups[string(t)]; group != nil {
			o.Groups = append(o.Groups, *group)
		}
	}

	for i := range o.Groups {
		slices.SortStableFunc(o.Groups[i].Cards, compareCards)
	}

	o.addCounts(counts)
	o.addChoices(namespaces)

	return o
}

// compareCards orders cards by their state, then by label and namespace.
func compareCards(a, b Card) int {
	if difference := slices.Index(states, a.State()) - slices.Index(states, b.State()); difference != 0 {
		return difference
	}

	if difference := strings.Compare(a.Label, b.Label); difference != 0 {
		return difference
	}

	return strings.Compare(a.Namespace, b.Namespace)
}

// addCounts adds the number of providers in each state that occurs.
func (o *Overview) addCounts(counts map[string]int) {
	for _, state := range states {
		if counts[state] > 0 {
			o.Counts = append(o.Counts, Count{
				State: state, Number: counts[state], Path: o.Base + "?state=" + state, Selected: o.Filter.State == state,
			})
		}
	}
}

// addChoices adds what the filter offers.
func (o *Overview) addChoices(namespaces map[string]bool) {
	for _, t := range v1alpha2.ProviderTypes() {
		o.Types = append(o.Types, Choice{string(t), typeNames[t], o.Filter.Type == string(t)})
	}

	for _, state := range states {
		o.States = append(o.States, Choice{state, state, o.Filter.State == state})
	}

	for namespace := range namespaces {
		o.Namespaces = append(o.Namespaces, Choice{namespace, namespace, o.Filter.Namespace == namespace})
	}

	slices.SortFunc(o.Namespaces, func(a, b Choice) int { return strings.Compare(a.Value, b.Value) })
}
