package page

import (
	"slices"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
)

// graph are the providers of a cluster, and which of them need which.
type graph struct {
	// cluster is the one of facts.Provider.
	cluster string
	nodes   []*node
	// core is the provider that all others need; nil if there is none.
	core *node
}

// node is a provider in a graph.
type node struct {
	facts.Provider

	// needs are the providers in spec.dependsOn, and missing the labels of those that there are not.
	needs   []*node
	missing []string
	// neededBy are the providers that name this one in spec.dependsOn.
	neededBy []*node
}

// newGraphs returns a graph for each cluster, that of the page first, then the others by their first provider.
func newGraphs(providers []facts.Provider) []*graph {
	var graphs []*graph

	known := map[string]*graph{}

	for _, v := range providers {
		g := known[v.Cluster]
		if g == nil {
			g = &graph{cluster: v.Cluster}
			known[v.Cluster] = g
			graphs = append(graphs, g)
		}

		g.nodes = append(g.nodes, &node{Provider: v})
	}

	isLocal := func(g *graph) bool { return g.cluster == "" }
	if at := slices.IndexFunc(graphs, isLocal); at > 0 {
		local := graphs[at]
		graphs = slices.Insert(slices.Delete(graphs, at, at+1), 0, local)
	}

	for _, g := range graphs {
		g.connect()
	}

	return graphs
}

// connect finds out what each provider needs.
func (g *graph) connect() {
	labeled := map[string]*node{}

	for _, n := range g.nodes {
		if known := labeled[n.Label]; known == nil || preferred(n.Provider, known.Provider) {
			labeled[n.Label] = n
		}
	}

	g.core = labeled[v1alpha2.CoreProviderName]

	for _, n := range g.nodes {
		for _, label := range n.DependsOn {
			needed := labeled[label]
			if needed == nil {
				n.missing = append(n.missing, label)
				continue
			}

			n.needs = append(n.needs, needed)
			needed.neededBy = append(needed.neededBy, n)
		}
	}
}

// preferred reports whether, of two resources for the same provider, the first one counts: the one that has installed
// it, before that the older one.
func preferred(a, b facts.Provider) bool {
	if installed := a.Release != nil; installed != (b.Release != nil) {
		return installed
	}

	return a.Created.Before(&b.Created)
}

// needsCore reports whether a provider needs core, without naming it.
func (n *node) needsCore() bool { return n.Kind != string(v1alpha2.CoreProviderType) }
