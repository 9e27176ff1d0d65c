// Package foreign recognizes releases of other programs, which Capstan must leave alone although they have the name of
// a provider's release.
package foreign

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// IsRelease reports whether an observed release was created by another program for something else than the
// provider. A release of the provider's own chart, which a user has installed with Helm, is none. The record
// of its newest revision is nil if it cannot be read.
func IsRelease(provider v1alpha2.Provider, history state.History, record *release.Record) bool {
	if !history.Foreign() || Adopts(provider) {
		return false
	}

	if record == nil {
		return provider.GetStatus().Release == nil
	}

	return IsOther(provider, record)
}

// IsOther reports whether a record of another program holds another chart than the provider's.
func IsOther(provider v1alpha2.Provider, record *release.Record) bool {
	return record.Provider != v1alpha2.Label(provider)
}

// Confirm completes each revision of a release by what the status knows of it, by the digest that the status has of
// what the operator has written. Helm's storage proves nothing. If a later revision than the newest one is known, its
// record was deleted: what is left is older than what runs. Records that are too far ahead are left out. ConfirmNewest
// completes the newest revision.
func Confirm(provider v1alpha2.Provider, history state.History) state.History {
	status := provider.GetStatus()
	history = history.Near(state.Last(status))

	for i := range history.Revisions {
		revision := &history.Revisions[i]
		known, exists := state.Known(status, revision.Number)

		switch {
		case i > 0 && exists && revision.Ours():
			revision.Recall(known)
		case i == 0 && exists && revision.Number >= state.Last(status):
			revision.Digest = known.Digest
		}
	}

	return history
}

// Show completes the revisions of a release for people: their records are not looked at, and nothing may be done by
// them.
func Show(provider v1alpha2.Provider, history state.History) state.History {
	history = history.Near(state.Last(provider.GetStatus()))

	for i := range history.Revisions {
		revision := &history.Revisions[i]
		if known, exists := state.Known(provider.GetStatus(), revision.Number); exists && revision.Ours() {
			revision.Recall(known)
		}
	}

	return history
}

// ConfirmNewest completes Confirm for the newest revision, whose record was read. That of a revision which was created
// in another cluster than the one of self was copied from there.
func ConfirmNewest(provider v1alpha2.Provider, self state.Owner, history state.History, record *release.Record) {
	newest := &history.Revisions[0]
	copied := self.Cluster != "" && record.Owner.Cluster != self.Cluster

	if !newest.Confirms(record.Digest) || copied {
		newest.Digest = ""
		return
	}

	known, _ := state.Known(provider.GetStatus(), newest.Number)
	newest.Recall(known)
}

// Reader reads Helm's records. *release.Engine implements it.
type Reader interface {
	Read(ctx context.Context, release types.NamespacedName, revision state.Revision) (*release.Record, error)
}

// Owner returns the resource that a release was created for. If the record of the newest revision, which is nil if it
// cannot be read, does not name it, because another program has made it, the newest one that Capstan made does.
func Owner(ctx context.Context, reader Reader, history state.History, record *release.Record) (state.Owner, error) {
	if record != nil && record.Owner != (state.Owner{}) {
		return record.Owner, nil
	}

	for i, revision := range history.Revisions {
		if i == 0 || !revision.Ours() {
			continue
		}

		record, err := reader.Read(ctx, history.Release, revision)
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

// Unconfirmed returns why a revision is not acted on.
func Unconfirmed(
	provider v1alpha2.Provider, key types.NamespacedName, revision state.Revision,
) *release.UnconfirmedError {
	err := &release.UnconfirmedError{Release: key, Revision: revision.Number}

	if last := state.Last(provider.GetStatus()); last > revision.Number && !revision.Confirmed() {
		err.Newest = last
	}

	return err
}

// MayHaveInstalled reports whether the resource has created a revision of its release, or was about to, by its status.
func MayHaveInstalled(provider v1alpha2.Provider) bool {
	status := provider.GetStatus()
	return status.Release != nil || len(status.Inventory) > 0
}

// Adopts reports whether a user allows to take over a release of something else, by what the spec asks for: its records
// are not believed.
func Adopts(provider v1alpha2.Provider) bool {
	return v1alpha2.Asks(provider, v1alpha2.AdoptReleaseAnnotation)
}
