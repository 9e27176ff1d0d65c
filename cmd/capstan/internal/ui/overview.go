package ui

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// maxMessage limits the message of a card in bytes.
const maxMessage = 300

// Overview is the page with all providers.
type Overview struct {
	Frame

	Filter  Filter
	Counts  []Count
	Groups  []Group
	Command string
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
func (f Filter) matches(v view.Provider, card Card) bool {
	if f.Type != "" && f.Type != v.Kind ||
		f.State != "" && f.State != card.State ||
		f.Namespace != "" && f.Namespace != v.Namespace {
		return false
	}

	text := strings.ToLower(strings.Join([]string{card.Label, v.Kind, v.Namespace, v.Version, card.StateText}, " "))

	for word := range strings.FieldsSeq(strings.ToLower(f.Search)) {
		if !strings.Contains(text, word) {
			return false
		}
	}

	return true
}

// Choice is an option of a filter.
type Choice struct {
	Value, Text string
	Selected    bool
}

// Count is the number of providers in a state, with a link to them.
type Count struct {
	State, Text string
	Number      int
	Path        string
	// Selected means that only providers in this state are shown.
	Selected bool
}

// Group are cards with a heading.
type Group struct {
	ID, Title string
	Cards     []Card
}

// Card is a provider on the overview.
type Card struct {
	ID, Path           string
	Label, Namespace   string
	State, StateText   string
	Version, Wanted    string
	Contract, Revision string
	Upgrade, Age       string
	Drifted            bool
	Automatic          []Note
	Modes              []string
	Message, Command   string
}

// Note is a remark. Its level is "busy" or "bad".
type Note struct{ Level, Text string }

// newCard returns the card of a provider.
func newCard(frame Frame, v view.Provider) Card {
	c := Card{
		ID:        strings.Join([]string{v.Kind, v.Namespace, v.Name}, "/"),
		Path:      frame.Base + providerPath(v),
		Label:     v.Label,
		Namespace: v.Namespace,
		State:     stateOf(v),
		StateText: stateText(v),
		Version:   v.Version,
		Wanted:    v.Asks(),
		Contract:  v.Contract,
		Drifted:   v.Is(v1alpha2.DriftedCondition),
		Modes:     modes(v),
		Age:       frame.age(v.Created.Time),
		Command:   command(v, "status"),
	}

	for _, note := range notes(v) {
		note.Text = shorten(note.Text)
		c.Automatic = append(c.Automatic, note)
	}

	if v.Release != nil && v.Release.Revision > 0 {
		c.Revision = strconv.FormatInt(v.Release.Revision, 10)
	}

	if len(v.Upgrades) > 0 {
		c.Upgrade = v.Upgrades[len(v.Upgrades)-1].Version
	}

	if ready := v.Condition(v1alpha2.ReadyCondition); ready != nil && c.State != stateReady && c.State != stateStopped {
		c.Message = shorten(ready.Message)
	}

	return c
}

// notes returns what the operator does by itself.
func notes(v view.Provider) []Note {
	all := v.AutomaticUpgrades()
	found := make([]Note, 0, len(all))

	for _, note := range all {
		level := levelBusy
		if note.Problem {
			level = levelBad
		}

		found = append(found, Note{Level: level, Text: note.Text})
	}

	return found
}

// modes returns the parts of the spec that keep the operator from its usual work.
func modes(v view.Provider) []string {
	var found []string

	if v.Suspended {
		found = append(found, "suspended")
	}

	if v.Paused {
		found = append(found, "paused")
	}

	if v.RollbackTo != nil {
		found = append(found, "held at revision "+strconv.FormatInt(*v.RollbackTo, 10))
	}

	if v.Remote {
		found = append(found, "in another cluster")
	}

	return found
}

// shorten cuts a message that is too long for a card.
func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}

	return strings.ToValidUTF8(message[:maxMessage], "") + " …"
}

// newOverview returns the page with the providers that a filter selects: first those that fail, then the others by
// type.
func newOverview(frame Frame, filter Filter, providers []view.Provider) *Overview {
	o := &Overview{Frame: frame, Filter: filter, Total: len(providers), Command: "capstan status"}
	failing := Group{ID: "group-failing", Title: "Failing"}
	groups := map[string]*Group{}
	counts := map[string]int{}
	namespaces := map[string]bool{}

	for _, v := range providers {
		card := newCard(frame, v)
		counts[card.State]++
		namespaces[v.Namespace] = true

		if !filter.matches(v, card) {
			continue
		}

		o.Shown++

		if card.State == stateFailing {
			failing.Cards = append(failing.Cards, card)
			continue
		}

		if groups[v.Kind] == nil {
			groups[v.Kind] = &Group{ID: "group-" + v.Kind, Title: typeNames[v1alpha2.ProviderType(v.Kind)]}
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
	if difference := slices.Index(states, a.State) - slices.Index(states, b.State); difference != 0 {
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
				State: state, Text: state, Number: counts[state], Path: o.Base + "?state=" + state,
				Selected: o.Filter.State == state,
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
