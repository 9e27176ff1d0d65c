package ui

import (
	"context"
	"net/http"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/ui/page"
)

func (h *handler) plan(ctx context.Context, _ *http.Request, view View) (any, error) {
	found, err := view.Providers(ctx)
	if err != nil {
		return nil, err
	}

	providers := make([]facts.Provider, 0, len(found))
	for _, p := range found {
		providers = append(providers, facts.NewProvider(p))
	}

	return page.NewPlan(h.frame(), providers, h.offered(found)), nil
}

// offered returns what is known of the sources of providers, by page.ID; nil if they are not asked.
func (h *handler) offered(providers []v1alpha2.Provider) map[string]page.Offer {
	if h.Offers == nil {
		return nil
	}

	offers := make(map[string]page.Offer, len(providers))

	for _, p := range providers {
		versions, asked, err := h.Offers.of(p, offerTime)
		offers[pageID(p)] = page.Offer{Versions: versions, Asked: asked, Problem: problemOf(err)}
	}

	return offers
}
