package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/foreign"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// rollbackChecker checks whether a provider may return to an earlier revision of its release. The same is checked of
// the revision that spec.release.rollbackTo names and of those that the operator itself returns to after a failure:
// contracts may have changed since the revision was installed, and CRDs are never rolled back.
type rollbackChecker struct {
	planner   *plan.Planner
	preflight *preflight.Checker
}

// uncheckedError means that it is not known whether the managers of a revision can work with the CRDs.
type uncheckedError struct {
	// version of the revision.
	version string
	// crds is the version of the provider that CRDs were applied for.
	crds string
}

func (e *uncheckedError) Error() string {
	return fmt.Sprintf("CustomResourceDefinitions are those of %s and are never downgraded, and the chart of %s "+
		"is no longer stored, so whether its managers can work with them is not known; set spec.version to %s instead",
		e.crds, e.version, e.version)
}

// refusesRollback reports whether an error of check means that the provider must not return to the revision, and
// not that this could not be found out.
func refusesRollback(err error) bool {
	return errors.As(err, new(*preflight.Error)) ||
		errors.As(err, new(*crds.IncompatibleError)) ||
		errors.As(err, new(*crds.OwnershipError)) ||
		errors.As(err, new(*storage.CorruptError)) ||
		errors.As(err, new(*release.UnconfirmedError)) ||
		errors.As(err, new(*uncheckedError))
}

// check checks whether the managers of a revision may run beside the other providers, and can work with
// the CRDs and conversion webhooks of today. It applies nothing.
func (c *rollbackChecker) check(
	ctx context.Context, provider v1alpha2.Provider, target *clusters.Target, revision state.Revision,
) error {
	record, err := target.Releases.Read(ctx, plan.ReleaseKey(provider), revision)
	if err != nil {
		return err
	}

	if !revision.Known.Confirms(record.Digest) {
		unconfirmed := foreign.Unconfirmed(provider, plan.ReleaseKey(provider), revision, record)
		unconfirmed.Newest = 0 // the records of later revisions exist

		return unconfirmed
	}

	if err := c.preflight.Contracts(ctx, provider, record.Contract); err != nil {
		return err
	}

	stored, err := c.planner.Charts.Installed(ctx, provider, record.AppVersion, revision.ChartDigest)
	if errors.Is(err, store.ErrNotFound) {
		return checkRollbackVersion(ctx, provider, target.CRDs, record.AppVersion)
	}

	if err != nil {
		return err
	}

	planned, err := c.planner.CRDs(ctx, target.CRDs, provider, stored.Chart)
	if err != nil {
		return err
	}

	return target.CRDs.CheckUnmanaged(ctx, planned)
}

// checkRollbackVersion checks a revision whose chart is no longer stored: its managers know the CRDs unless one
// was applied for a newer version.
func checkRollbackVersion(
	ctx context.Context, provider v1alpha2.Provider, applier *crds.Applier, version string,
) error {
	newer, err := applier.NewerVersion(ctx, v1alpha2.Label(provider), version)
	if err != nil {
		return err
	}

	if newer != "" {
		return &uncheckedError{version: version, crds: newer}
	}

	return nil
}
