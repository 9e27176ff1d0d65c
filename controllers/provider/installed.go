package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
)

// installed is what a read of the release has found.
type installed struct {
	// observed is set once the release was read.
	observed bool

	// foreign is set if the release belongs to something else: it is neither cared for nor changed.
	// unconfirmed is set if its newest revision is not known to be the resource's: it is not cared for.
	foreign, unconfirmed error

	// Look has no record if that is not cared for.
	release.Look

	// otherChart describes the chart of the newest revision if another program has made it of one that is not the
	// provider's; empty otherwise.
	otherChart string
	// health of the record's objects; nil until it was read.
	health   *health.Report
	replicas replicas
	// trust is whether the API server trusts the webhooks; it was not found out if the other objects are not healthy.
	trust trust
	// deviations of the objects; nil until they were compared.
	deviations *[]deviation
	// unconverted is why objects could not be compared although they exist; nil if they could.
	unconverted *problem.Error
	// waiting are the objects of a staged revision that wait for others, and removing is set while all
	// that is left to do is to wait for deletions.
	waiting  []asks.Held
	removing bool
	// stale is set if the release was changed since it was read.
	stale bool
}

// healthy reports whether the objects of the revision are known to be healthy, and complete.
func (i *installed) healthy() bool {
	return i.health != nil && i.health.Healthy() && !i.isStaged() && !i.trust.gates
}

// isOwn reports whether the newest revision is known to be the resource's. What another program has done to the release
// is shown, and may be healthy, but is neither corrected nor completed.
func (i *installed) isOwn() bool { return i.Record != nil && i.Newest.Confirmed() }

// content returns the content of the newest revision; empty if there is none or it cannot be read.
func (i *installed) content() release.Record { return ptr.Deref(i.Record, release.Record{}) }

// version returns the version of the newest revision; empty if it cannot be read, or has none.
func (i *installed) version() string { return i.content().AppVersion }

// contract returns the contract of the newest revision; empty if it is not known.
func (i *installed) contract() string { return i.content().Contract }

// description returns what `helm history` shows for the newest revision; empty if it cannot be read.
func (i *installed) description() string { return i.content().Description }

// isGone reports whether the release was looked at and does not exist.
func (i *installed) isGone() bool { return i.observed && len(i.History.Revisions) == 0 }

// unreadable reports whether there is a release of the resource whose newest revision cannot be read.
func (i *installed) unreadable() bool {
	return len(i.History.Revisions) > 0 && i.foreign == nil && i.Record == nil
}

// deployed reports whether the newest revision is deployed, with a chart of the provider.
func (i *installed) deployed() bool {
	return i.Record != nil && i.otherChart == "" && i.Newest.Status == v1alpha2.RevisionDeployed
}

// works reports whether the objects of the newest revision are known to be healthy, and complete, with the replicas
// that they should have, and webhooks that can be called. Those of another chart are not the provider.
func (i *installed) works() bool {
	return i.otherChart == "" && i.healthy() && len(i.replicas.wrong) == 0 && i.trust.problem == ""
}

// runs reports whether the newest revision is deployed, and works.
func (i *installed) runs() bool { return i.deployed() && i.works() }

// paused reports whether the newest revision runs no managers.
func (i *installed) paused() bool { return i.Newest.Paused || i.Record != nil && i.Record.Paused() }

// problem describes why the newest revision does not run.
func (i *installed) problem() string {
	unhealthy := i.unhealthy()

	switch {
	case i.otherChart != "":
		return fmt.Sprintf("another program made revision %d of release %s (%s)",
			i.Newest.Number, i.History.Release.Name, i.description())
	case !i.deployed():
		return fmt.Sprintf("revision %d is %s: %s", i.Newest.Number, i.Newest.Status, i.description())
	case unhealthy == "":
		return fmt.Sprintf("revision %d is not complete yet: objects that waited for others are next", i.Newest.Number)
	}

	return unhealthy
}

// isStaged reports whether objects of the newest revision wait for others.
func (i *installed) isStaged() bool {
	return i.Newest.Staged() && i.Newest.Status == v1alpha2.RevisionDeployed
}

// expectedObjects returns the objects of the revision that do not wait for others, and should exist.
func (i *installed) expectedObjects() []object.Key {
	return slices.DeleteFunc(i.Record.Needed(i.Newest), func(o object.Key) bool {
		return waits(i.waiting, o)
	})
}

// othersHealthy reports whether all objects but those that wait for them are known to be healthy, with webhooks that
// can be called if these could be before the revision.
func (i *installed) othersHealthy() bool { return i.objectsHealthy() && !i.trust.gates }

// objectsHealthy reports whether all objects but those that wait for them are known to be healthy by themselves.
func (i *installed) objectsHealthy() bool {
	return i.health != nil && !slices.ContainsFunc(i.health.Unhealthy(), func(h health.ObjectHealth) bool {
		return !waits(i.waiting, h.Object)
	})
}

// unhealthy describes why objects are not healthy, cannot be called, or have other replicas than the revision. Those
// that wait for others are named only if there is no other cause.
func (i *installed) unhealthy() string {
	if i.objectsHealthy() {
		return cmp.Or(i.trust.cause(), i.health.Message(i.History.Release.Namespace), strings.Join(i.replicas.wrong, "; "))
	}

	if i.health == nil {
		return ""
	}

	causes := slices.DeleteFunc(slices.Clone(i.health.Objects), func(h health.ObjectHealth) bool {
		return waits(i.waiting, h.Object)
	})

	return health.Report{Objects: causes}.Message(i.History.Release.Namespace)
}

// inventory returns the objects that the release has, or may have: those of the status, of the newest revision if that
// is known to be the resource's, and those that were searched for because the status was lost.
func (r *run) inventory() []object.Key {
	objects := object.Union(object.KeysOfInventory(r.provider.GetStatus().Objects), r.found)
	if r.installed.isOwn() {
		objects = object.Union(objects, r.installed.Record.Keys())
	}

	return objects
}

// leaves reports whether the release has objects that the newest revision does not have.
func (r *run) leaves() bool {
	return r.installed.isOwn() && len(object.Without(r.inventory(), r.installed.Record.Keys())) > 0
}
