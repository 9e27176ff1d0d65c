package ui

import (
	"context"
	"net/http"

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

	return page.NewPlan(h.frame(), providers, h.Offers.of(found)), nil
}
