// Package foreign recognizes releases of other programs, which Capstan must leave alone although they have the name of
// a provider's release.
package foreign

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release"
	objects "github.com/capstan-project/capstan/controllers/release/inventory"
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

// Confirm gives each revision of a release what tells that it is the resource's: the digests that the status has of
// what the operator has written, or the user accepts by the annotation. The metadata of a Secret proves nothing. If a
// later revision than the newest one is known, its record was deleted: what is left is older than what runs, and not
// accepted either, because the annotation may be left from when it was the newest one. What changes of older revisions
// is what the status knows.
func Confirm(provider v1alpha2.Provider, self state.Owner, history state.History) {
	digests, last := knownDigests(provider.GetStatus())
	accepted := provider.GetAnnotations()[v1alpha2.AdoptReleaseAnnotation]

	for i := range history.Revisions {
		revision := &history.Revisions[i]
		outdated := i == 0 && revision.Number < last
		other := revision.Owner.Cluster != self.Cluster && self.Cluster != ""

		switch {
		case accepted == "true" && len(digests) == 0:
			revision.Known = state.AnyRecord()
		case outdated:
			revision.Known = state.Evidence{}
		case other:
			revision.Known = state.KnownDigests(nil, acceptedDigest(accepted))
		default:
			revision.Known = state.KnownDigests(digests[revision.Number], acceptedDigest(accepted))
		}

		if known, exists := report.Known(provider.GetStatus(), revision.Number, ""); exists && i > 0 {
			revision.Recall(known)
		}
	}
}

// acceptedDigest returns the digest that an annotation accepts; empty for none.
func acceptedDigest(annotation string) string {
	if !strings.Contains(annotation, ":") {
		return ""
	}

	return annotation
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

// ConfirmNewest completes Confirm for the newest revision, whose record was read. A record that the resource does not
// know, for example after a restore, is also confirmed by the objects in the cluster, if all are as it says, and none
// is left that only the last revision has which the resource knows. Then it tells once what has changed of it.
func ConfirmNewest(
	ctx context.Context,
	provider v1alpha2.Provider,
	releases *release.Engine,
	history state.History,
	record *release.Record,
) error {
	newest := &history.Revisions[0]

	confirmed := newest.Known.Confirms(record.Digest)
	newest.Known = state.Evidence{}

	if !confirmed {
		var err error
		if confirmed, err = runs(ctx, provider, releases, history, record); err != nil {
			return err
		}
	}

	if !confirmed {
		return nil
	}

	newest.Known = state.KnownDigests([]string{record.Digest}, "")

	if known, exists := report.Known(provider.GetStatus(), newest.Number, record.Digest); exists {
		newest.Recall(known)
	}

	return nil
}

// runs reports whether the objects in the cluster are as the record of the newest revision says.
func runs(
	ctx context.Context,
	provider v1alpha2.Provider,
	releases *release.Engine,
	history state.History,
	record *release.Record,
) (bool, error) {
	if history.Foreign() {
		return false, nil
	}

	newest := history.Revisions[0]
	_, last := knownDigests(provider.GetStatus())
	former, exists := history.Find(last)

	// What the last revision had is not known any more, so nor is what the record leaves out.
	if last >= newest.Number || last > 0 && !exists {
		return false, nil
	}

	equal, err := releases.Equals(ctx, history.Release, newest, record)
	if err == nil && equal && exists {
		equal, err = follows(ctx, releases, history, former, record)
	}

	return equal, err
}

// follows reports whether what a confirmed revision has, and a later record does not, is gone.
func follows(
	ctx context.Context, releases *release.Engine, history state.History, former state.Revision, record *release.Record,
) (bool, error) {
	before, err := releases.Read(ctx, history.Release, former)
	if errors.As(err, new(*storage.CorruptError)) || errors.Is(err, storage.ErrChanged) {
		return false, nil
	}

	if err != nil || !former.Confirm().Confirms(before.Digest) {
		return false, err
	}

	left, err := releases.Remains(ctx, history.Release, objects.Without(before.Keys(), record.Keys()))

	return !left, err
}

// Unconfirmed returns why a revision is not acted on. The record is nil if it was not read.
func Unconfirmed(
	provider v1alpha2.Provider, key types.NamespacedName, revision state.Revision, record *release.Record,
) *release.UnconfirmedError {
	err := &release.UnconfirmedError{Release: key, Revision: revision.Number}

	if record != nil {
		err.Digest = record.Digest
	}

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
	accepted := provider.GetAnnotations()[v1alpha2.AdoptReleaseAnnotation]
	return accepted == "true" || acceptedDigest(accepted) != ""
}
