// Package foreign recognizes what other programs have installed. Capstan must leave alone releases that have the
// name of a provider's release, and providers that are installed in another namespace. Of a provider that is adopted,
// it finds out the version.
package foreign

import (
	"github.com/capstan-project/capstan/api/v1alpha2"
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

	installed := provider.GetStatus().Release != nil
	if record == nil {
		return !installed
	}

	// A plain chart names no provider. The one that was installed before is known by its name.
	chart := provider.GetStatus().Chart
	again := installed && chart != nil && chart.Plain && record.ChartName == chart.Name

	return record.Provider != v1alpha2.Label(provider) && !again
}

// Confirm marks the revisions of a release that the resource is known to have created: its status says that it has
// installed the release, or has begun to, and they are recorded as its own. Any writer of Secrets can make a record,
// but does not know the UID of a resource that does not exist yet. A user may adopt all of them.
func Confirm(provider v1alpha2.Provider, self state.Owner, history state.History) {
	adopted, installed := Adopts(provider), MayHaveInstalled(provider)

	for i := range history.Revisions {
		revision := &history.Revisions[i]
		revision.Confirmed = adopted || installed && revision.Owner.Is(self)
	}
}

// MayHaveInstalled reports whether the resource has created a revision of its release, or was about to, by its status.
func MayHaveInstalled(provider v1alpha2.Provider) bool {
	status := provider.GetStatus()
	return status.Release != nil || status.Announced != nil
}

// Adopts reports whether a user allows to take over a release of something else.
func Adopts(provider v1alpha2.Provider) bool {
	return v1alpha2.Asks(provider, v1alpha2.AdoptReleaseAnnotation)
}
