// Package foreign recognizes releases of other programs, which Capstan must leave alone although they have the name of
// a provider's release.
package foreign

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
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

// Confirm gives each revision of a release what tells that it is the resource's: the digests that the status has of
// what the operator has written. The metadata of a Secret proves nothing. A user may accept any record for a resource
// that has none. If a later revision than the newest one is known, its record was deleted: what is left is older than
// what runs. What changes of older revisions is what the status knows.
func Confirm(provider v1alpha2.Provider, self state.Owner, history state.History) {
	digests, last := knownDigests(provider.GetStatus())

	for i := range history.Revisions {
		revision := &history.Revisions[i]
		outdated := i == 0 && revision.Number < last
		other := revision.Owner.Cluster != self.Cluster && self.Cluster != ""

		switch {
		case Adopts(provider) && len(digests) == 0:
			revision.Known = state.AnyRecord()
		case outdated, other:
			revision.Known = state.Evidence{}
		default:
			revision.Known = state.KnownDigests(digests[revision.Number])
		}

		if known, exists := report.Known(provider.GetStatus(), revision.Number, ""); exists && i > 0 {
			revision.Recall(known)
		}
	}
}

// knownDigests returns the digests of revisions that a status has, by their numbers, and the last revision that was
// entered in its history.
func knownDigests(status *v1alpha2.ProviderStatus) (digests map[int][]string, last int) {
	digests = map[int][]string{}

	for _, entry := range status.History {
		if entry.Digest != "" {
			number := int(entry.Revision)
			digests[number] = append(digests[number], entry.Digest)
			last = max(last, number)
		}
	}

	if announced := status.Announced; announced != nil && announced.Digest != "" {
		number := int(announced.Revision)
		digests[number] = append(digests[number], announced.Digest)
	}

	return digests, last
}

// ConfirmNewest completes Confirm for the newest revision, whose record was read. It tells what has changed of it.
func ConfirmNewest(provider v1alpha2.Provider, history state.History, record *release.Record) {
	newest := &history.Revisions[0]
	if !newest.Known.Confirms(record.Digest) {
		newest.Known = state.Evidence{}
		return
	}

	newest.Known = state.KnownDigests([]string{record.Digest})

	if known, exists := report.Known(provider.GetStatus(), newest.Number, record.Digest); exists {
		newest.Recall(known)
	}
}

// Unconfirmed returns why a revision is not acted on.
func Unconfirmed(
	provider v1alpha2.Provider, key types.NamespacedName, revision state.Revision,
) *release.UnconfirmedError {
	err := &release.UnconfirmedError{Release: key, Revision: revision.Number}

	if _, last := knownDigests(provider.GetStatus()); last > revision.Number && !revision.Confirmed() {
		err.Newest = last
	}

	return err
}

// MayHaveInstalled reports whether the resource has created a revision of its release, or was about to, by its status.
func MayHaveInstalled(provider v1alpha2.Provider) bool {
	status := provider.GetStatus()
	return status.Release != nil || len(status.Inventory) > 0
}

// Adopts reports whether a user allows to take over a release of something else.
func Adopts(provider v1alpha2.Provider) bool {
	return v1alpha2.Asks(provider, v1alpha2.AdoptReleaseAnnotation)
}
