package release

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// IsForeign reports whether an observed release was created by another program for something else than the provider. A
// release of the provider's own chart, which a user has installed with Helm, is none. The record of its newest revision
// is nil if it cannot be read.
func IsForeign(provider v1alpha2.Provider, history state.History, record *Record) bool {
	if !history.Foreign() || Adopts(provider) {
		return false
	}

	if record == nil {
		return provider.GetStatus().Release == nil
	}

	return !record.IsOf(provider)
}

// IsOf reports whether a record holds the provider's chart.
func (r *Record) IsOf(provider v1alpha2.Provider) bool { return r.Provider == v1alpha2.Label(provider) }

// ReadFunc reads the record of a revision, as Engine.Read does.
type ReadFunc func(context.Context, types.NamespacedName, state.Revision) (*Record, error)

// OwnerOf returns the resource that a release was created for. If the record of the newest revision, which is nil if it
// cannot be read, does not name it, because another program has made it, the newest one that Capstan made does.
func OwnerOf(ctx context.Context, read ReadFunc, history state.History, record *Record) (state.Owner, error) {
	if record != nil && record.Owner != (state.Owner{}) {
		return record.Owner, nil
	}

	for i, revision := range history.Revisions {
		if i == 0 || !revision.Ours() {
			continue
		}

		record, err := read(ctx, history.Release, revision)
		if errors.As(err, new(*storage.CorruptError)) {
			return state.Owner{}, nil
		}

		if err != nil {
			return state.Owner{}, err
		}

		return record.Owner, nil
	}

	return state.Owner{}, nil
}

// MissingNewest returns the revision that the resource has installed after the given newest one, and whose record is
// gone; 0 for none.
func MissingNewest(provider v1alpha2.Provider, newest state.Revision) int {
	if last := state.Last(provider.GetStatus()); last > newest.Number && !newest.Confirmed() {
		return last
	}

	return 0
}

// MayHaveInstalled reports whether the resource has created a revision of its release, or was about to, by its status.
func MayHaveInstalled(provider v1alpha2.Provider) bool {
	status := provider.GetStatus()
	return status.Release != nil || len(status.Objects) > 0
}

// HasLostStatus reports whether a resource has lost its status, for example because it was restored without: it has the
// operator's finalizer, which comes before an installation, and what was installed since is not known.
func HasLostStatus(provider v1alpha2.Provider) bool {
	return controllerutil.ContainsFinalizer(provider, v1alpha2.Finalizer) && provider.GetStatus().ObservedGeneration <= 0
}

// Adopts reports whether a user allows to take over a release of something else, by what the spec asks for: its records
// are not believed.
func Adopts(provider v1alpha2.Provider) bool {
	return v1alpha2.Asks(provider, v1alpha2.AdoptReleaseAnnotation)
}
