package ui

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/upgradeplan"
	"github.com/capstan-project/capstan/ui/page"
)

// preview shows what the upgrade of a provider to a version would change.
func (h *handler) preview(ctx context.Context, r *http.Request, view View) (any, error) {
	p, err := find(ctx, r, view)
	if err != nil {
		return nil, err
	}

	version := r.URL.Query().Get("to")
	v := facts.NewProvider(p)

	// A view of a page makes this program fetch nothing but what the source is known to offer.
	if !h.offers(p, v, version) {
		return nil, &RefusedError{
			Code:    http.StatusNotFound,
			Message: fmt.Sprintf("No upgrade of %s to the version %q is known.", v.Label, version),
		}
	}

	content := page.NewPreview(h.frame(), v, version)

	switch {
	case h.Previews == nil:
		content.Problem = "The operator does not show what an upgrade would change, because it would have to read the " +
			"source and the variables with its own permissions. The command does that with yours."
	case p.GetSpec().Release != nil && p.GetSpec().Release.RollbackTo != nil:
		content.Problem = fmt.Sprintf("spec.release.rollbackTo is %d, so nothing but this revision is installed.",
			*p.GetSpec().Release.RollbackTo)
	default:
		wanted := p.DeepCopyObject().(v1alpha2.Provider) //nolint:forcetypeassert // a copy has the type
		wanted.GetSpec().Version = version
		content.SetChanges(h.Previews.of(wanted, keepTime))
	}

	return content, nil
}

// offers reports whether a version is among those that a provider can be upgraded to, as the status of the resource or
// its source says.
func (h *handler) offers(p v1alpha2.Provider, v facts.Provider, version string) bool {
	return slices.ContainsFunc(v.Upgrades, func(u v1alpha2.AvailableUpgrade) bool { return u.Version == version }) ||
		slices.ContainsFunc(h.Offers.last(p), func(o upgradeplan.Version) bool { return o.Version == version })
}
