package removal

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Keep leaves what is installed as it is, and removes only what makes it Capstan's: the release and the annotations of
// CRDs.
func (r *Removal) Keep(ctx context.Context) error {
	if err := r.Find(ctx); err != nil {
		return err
	}

	if err := r.Target.CRDs.Unmark(ctx, v1alpha2.Label(r.Provider), r.Provider.GetUID()); err != nil {
		return err
	}

	// The records come last: they say what has to be done.
	if r.recorded() {
		if err := r.Target.Releases.Dissolve(ctx, r.release, r.objects); err != nil {
			return err
		}

		ctrl.LoggerFrom(ctx).Info("Kept the provider without its release", "release", r.release.Name)
	}

	return nil
}
