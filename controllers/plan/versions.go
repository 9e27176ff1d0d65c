package plan

import (
	"context"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Version is a version that a provider's source offers.
type Version struct {
	// Version with its "v".
	Version string
	// Contract of Cluster API that it implements.
	Contract string
}

// Versions lists the versions that the provider's source offers and that its metadata declares a
// contract for, newest first. Tags that have no release yet are left out.
func (p *Planner) Versions(ctx context.Context, provider v1alpha2.Provider) ([]Version, error) {
	releases, metadata, err := p.Sources.List(ctx, provider)
	if err != nil {
		return nil, err
	}

	var versions []Version

	for _, r := range releases {
		// A version without a contract can never be installed.
		if contract, err := metadata.Contract(r.Name); err == nil {
			versions = append(versions, Version{Version: r.Name, Contract: contract})
		}
	}

	return versions, nil
}
