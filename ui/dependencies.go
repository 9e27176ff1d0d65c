package ui

import (
	"context"
	"net/http"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/ui/page"
)

func (h *handler) dependencies(ctx context.Context, _ *http.Request, view View) (any, error) {
	found, err := view.Providers(ctx)
	if err != nil {
		return nil, err
	}

	uses, err := h.uses(ctx, view, found, listTime)
	if err != nil {
		return nil, err
	}

	return page.NewDependencies(h.frame(), factsOf(found), uses), nil
}

// factsOf returns the facts that need no requests.
func factsOf(providers []v1alpha2.Provider) []facts.Provider {
	all := make([]facts.Provider, 0, len(providers))

	for _, p := range providers {
		v := facts.NewProvider(p)
		v.Release = p.GetStatus().Release
		all = append(all, v)
	}

	return all
}

// uses returns what a viewer may see of the objects of providers' kinds, by page.ID. They are looked up again if what
// is known is older than a time.
func (h *handler) uses(
	ctx context.Context, view View, providers []v1alpha2.Provider, most time.Duration,
) (map[string]page.Use, error) {
	known := map[string]page.Use{}

	var (
		ids []string
		all []facts.Usage
	)

	for _, p := range providers {
		if h.Usages == nil || p.GetSpec().KubeConfig != nil {
			continue // other clusters are not read
		}

		found, asked, err := h.Usages.of(p, most)
		id := pageID(p)
		known[id] = page.Use{Asked: asked, Problem: problemOf(err)}
		ids = append(ids, id)
		all = append(all, found)
	}

	visible, err := view.Visible(ctx, all)
	if err != nil {
		return nil, err
	}

	for i, id := range ids {
		use := known[id]
		use.Usage = visible[i]
		known[id] = use
	}

	return known, nil
}

// showRemoval adds to the page of a provider what keeps it from being removed.
func (h *handler) showRemoval(
	ctx context.Context, view View, p v1alpha2.Provider, v facts.Provider, shown *page.Provider,
) error {
	others, err := view.Providers(ctx)
	if err != nil {
		return err
	}

	uses, err := h.uses(ctx, view, []v1alpha2.Provider{p}, currentTime)
	if err != nil {
		return err
	}

	var known *page.Use
	if use, searched := uses[pageID(p)]; searched {
		known = &use
	}

	shown.ShowRemoval(v, known, factsOf(others))

	return nil
}
