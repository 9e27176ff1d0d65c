package removal

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/plan"
)

// GiveBack leaves the provider to another program, with the resource. It may be repeated until it succeeds. The error
// is a *BlockedError if the account lacks permissions.
func (r *Removal) GiveBack(ctx context.Context) error {
	r.release = plan.ReleaseKey(r.Provider)

	return r.explain(r.keep(ctx))
}

// keep leaves what is installed as it is, and removes only what makes it Capstan's: the release, its charts and
// the annotations of CRDs.
func (r *Removal) keep(ctx context.Context) error {
	if err := r.observe(ctx); err != nil {
		return err
	}

	if err := r.Target.CRDs.Unmark(ctx, v1alpha2.Label(r.Provider), r.Provider.GetUID()); err != nil {
		return err
	}

	// The records come last: they say what has to be done.
	if r.recorded {
		if err := r.Target.Releases.Dissolve(ctx, r.release); err != nil {
			return err
		}

		ctrl.LoggerFrom(ctx).Info("Kept the provider without its release", "release", r.release.Name)
	}

	return r.Charts.Delete(ctx, r.Provider)
}
