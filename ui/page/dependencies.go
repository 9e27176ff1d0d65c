package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
)

const (
	// maxLinks is how many providers an item of the page names in a row.
	maxLinks = 12
	// maxHolders is how many Clusters the page names.
	maxHolders = 50
)

// Dependencies is the page with what providers need and wait for, by the cluster that they are installed in.
type Dependencies struct {
	Frame

	Clusters []DependencyCluster
	// Holders are the Clusters whose objects keep providers from being removed, and MoreHolders how many more there
	// are.
	Holders     []Holder
	MoreHolders int
	// Searching counts the providers of which it is not known yet whether they are in use; empty if there are none.
	Searching string
	// Command prints what providers need and wait for, and RemovalCommand what keeps them from being removed.
	Command, RemovalCommand string
}

// DependencyCluster are the providers of a cluster.
type DependencyCluster struct {
	ID, Title string
	// Text counts the providers.
	Text   string
	Groups []DependencyGroup
}

// DependencyGroup are providers with a heading.
type DependencyGroup struct {
	ID, Title string
	Items     []DependencyItem
}

// DependencyItem is a provider with what it needs.
type DependencyItem struct {
	ID, Path         string
	Label, Namespace string
	State, StateText string
	Version          string
	// Contract is that of the provider, compared with that of core.
	Contract string
	// Waits is what the provider waits for, or why it fails; empty if neither.
	Waits string
	// Needs are the providers that have to be ready first, and NeededBy those that need this one.
	Needs, NeededBy DependencyLinks
	// Uses are what keeps the provider from being removed, in words; empty if nothing is known to.
	Uses string
	// RemovalCommand is set if Uses is.
	Command, RemovalCommand string
}

// DependencyLinks are links to providers.
type DependencyLinks struct {
	Items []DependencyLink
	// More is how many more there are.
	More int
	// All is set instead of links if those are all other providers of the cluster.
	All string
}

// DependencyLink is a link to a provider, without a path if there is none. The note says so, or that it is not ready.
type DependencyLink struct{ Label, Path, Note string }

// Holder is a Cluster whose objects keep providers from being removed.
type Holder struct {
	Name      string
	Providers DependencyLinks
}

// Use is what is known of the objects of a provider's kinds.
type Use struct {
	facts.Usage

	// Asked is when they were looked up; zero if they have not been yet.
	Asked time.Time
	// Problem is why they could not be looked up; empty if they were.
	Problem string
}

// NewDependencies returns the page with the providers, which are in clusterctl's order of installation. Uses are the
// objects of their kinds by ID.
func NewDependencies(frame Frame, providers []facts.Provider, uses map[string]Use) *Dependencies {
	frame.Current = "dependencies"
	d := &Dependencies{
		Frame: frame, Command: "capstan status", RemovalCommand: "capstan delete --all --dry-run",
	}

	for _, g := range newGraphs(providers) {
		d.Clusters = append(d.Clusters, d.newCluster(g, uses))
	}

	d.addHolders(providers, uses)

	return d
}

// newCluster returns the providers of a cluster: first those that wait or fail, then the others by type.
func (d *Dependencies) newCluster(g *graph, uses map[string]Use) DependencyCluster {
	c := DependencyCluster{ID: "cluster-" + g.cluster, Title: "This cluster", Text: plural(len(g.nodes), "provider")}
	if g.cluster != "" {
		c.Title = "Cluster of the kubeconfig in Secret " + g.cluster
	}

	waiting := DependencyGroup{Title: "Waiting or failing"}
	groups := map[string]*DependencyGroup{}

	for _, n := range g.nodes {
		item := d.newItem(g, n, uses)

		if item.Waits != "" {
			waiting.Items = append(waiting.Items, item)
			continue
		}

		if groups[n.Kind] == nil {
			groups[n.Kind] = &DependencyGroup{Title: typeNames[v1alpha2.ProviderType(n.Kind)]}
		}

		groups[n.Kind].Items = append(groups[n.Kind].Items, item)
	}

	if len(waiting.Items) > 0 {
		c.Text += fmt.Sprintf(", of which %d wait or fail", len(waiting.Items))
		c.Groups = append(c.Groups, waiting)
	}

	for _, t := range v1alpha2.ProviderTypes() {
		if group := groups[string(t)]; group != nil {
			c.Groups = append(c.Groups, *group)
		}
	}

	for i := range c.Groups {
		group := &c.Groups[i]
		group.ID = fmt.Sprintf("%s-%d", c.ID, i)
		slices.SortStableFunc(group.Items, func(a, b DependencyItem) int {
			return cmp.Or(strings.Compare(a.Label, b.Label), strings.Compare(a.Namespace, b.Namespace))
		})
	}

	return c
}

func (d *Dependencies) newItem(g *graph, n *node, uses map[string]Use) DependencyItem {
	id := ID(n.Kind, n.Namespace, n.Name)
	item := DependencyItem{
		ID:        id,
		Path:      d.Base + providerPath(n.Provider),
		Label:     n.Label,
		Namespace: n.Namespace,
		State:     stateOf(n.Provider),
		StateText: stateText(n.Provider),
		Version:   n.Version,
		Contract:  contractText(g, n),
		Waits:     shorten(waitsFor(n.Provider)),
		Needs:     d.needs(g, n),
		Command:   command(n.Provider, "status"),
	}

	if n == g.core && len(g.nodes) > 1 {
		item.NeededBy.All = "all other providers of the cluster"
	} else {
		item.NeededBy = d.links(n.neededBy)
	}

	if item.Uses = usesText(uses[id]); item.Uses != "" {
		item.RemovalCommand = command(n.Provider, "delete", "--dry-run")
	}

	return item
}

// contractText returns the contract of a provider, and that of core if it is another one.
func contractText(g *graph, n *node) string {
	if n.Contract == "" || g.core == nil || n == g.core || g.core.Contract == "" || g.core.Contract == n.Contract {
		return n.Contract
	}

	return n.Contract + ", with core's " + g.core.Contract
}

// needs returns links to what a provider needs: core, and what it names.
func (d *Dependencies) needs(g *graph, n *node) DependencyLinks {
	links := DependencyLinks{}

	if n.needsCore() && g.core == nil {
		links.add(missingLink(v1alpha2.CoreProviderName))
	}

	needs := n.needs
	if n.needsCore() && g.core != nil && !slices.Contains(needs, g.core) {
		needs = append([]*node{g.core}, needs...)
	}

	for _, needed := range needs {
		links.add(d.link(needed))
	}

	for _, label := range n.missing {
		links.add(missingLink(label))
	}

	return links
}

func (d *Dependencies) links(nodes []*node) DependencyLinks {
	links := DependencyLinks{}
	for _, n := range nodes {
		links.add(DependencyLink{Label: n.Label, Path: d.Base + providerPath(n.Provider)})
	}

	return links
}

func (l *DependencyLinks) add(link DependencyLink) {
	if len(l.Items) < maxLinks {
		l.Items = append(l.Items, link)
	} else {
		l.More++
	}
}

func (d *Dependencies) link(n *node) DependencyLink {
	link := DependencyLink{Label: n.Label, Path: d.Base + providerPath(n.Provider)}
	if n.Ready != "Ready" {
		link.Note = "not ready"
	}

	return link
}

func missingLink(label string) DependencyLink {
	return DependencyLink{Label: label, Note: "not found"}
}

// addHolders adds the Clusters whose objects keep providers from being removed, those of the most providers first.
func (d *Dependencies) addHolders(providers []facts.Provider, uses map[string]Use) {
	held := map[string]*Holder{}
	searching := 0

	for _, v := range providers {
		use, searched := uses[ID(v.Kind, v.Namespace, v.Name)]
		if searched && use.Asked.IsZero() && use.Problem == "" {
			searching++
		}

		for _, name := range clustersOf(use) {
			if held[name] == nil {
				held[name] = &Holder{Name: name}
				d.Holders = append(d.Holders, Holder{Name: name})
			}

			held[name].Providers.add(DependencyLink{Label: v.Label, Path: d.Base + providerPath(v)})
		}
	}

	if searching > 0 {
		d.Searching = plural(searching, "provider")
	}

	for i := range d.Holders {
		d.Holders[i] = *held[d.Holders[i].Name]
	}

	count := func(h Holder) int { return len(h.Providers.Items) + h.Providers.More }

	slices.SortFunc(d.Holders, func(a, b Holder) int {
		return cmp.Or(count(b)-count(a), strings.Compare(a.Name, b.Name))
	})

	if len(d.Holders) > maxHolders {
		d.MoreHolders = len(d.Holders) - maxHolders
		d.Holders = d.Holders[:maxHolders]
	}
}
