package preflight

import (
	"context"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// Choice checks whether the version of a provider may be chosen from several: not before core's contract
// is known, which decides which of them work with core. For core itself there is nothing to check.
func (c *Checker) Choice(ctx context.Context, provider v1alpha2.Provider) error {
	core, err := c.needed(ctx, provider)
	if err != nil || core == nil || contractOf(core) != "" {
		return err
	}

	return problem.Await(v1alpha2.WaitingForCoreProviderReadyReason,
		"waiting for CoreProvider %s/%s to be installed: its contract decides which version is the newest that works "+
			"with it; an exact spec.version does not wait for that", core.GetNamespace(), core.GetName())
}
