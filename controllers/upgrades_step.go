package controllers

import (
	"context"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// How often a source is asked for newer versions and moved tags, and how long it may take. Nothing
// waits for it.
const (
	offerAge     = time.Hour
	offerTimeout = 2 * time.Minute
)

// Upgrades knows what sources offer, for status.availableUpgrades, and whether they still have what
// is in use. It is a view that is made anew after a restart: nothing that is installed depends on
// it, and a source that does not answer changes nothing.
type Upgrades struct {
	Sources   *fetch.Resolver
	Preflight *preflight.Checker
	// Wake brings a resource back.
	Wake health.Wake

	mu     sync.Mutex
	offers map[types.UID]*offer
}

// offer is what a source offered when it was last asked.
type offer struct {
	asked    time.Time
	from     *v1alpha2.FetchConfiguration
	request  string // the annotation then
	releases []source.Version
	metadata *bundle.Metadata // of the newest, which lists the contracts of all
	looked   bool             // whether the tag was looked at
	moved    *move            // nil when it has not moved
}

// report writes the upgrades that are known into the status, and has the source asked if that was
// long ago. It gives the move of the tag that the chart in use came from, nil for none, and whether
// that is known.
func (u *Upgrades) report(ctx context.Context, provider v1alpha2.Provider) (moved *move, looked bool) {
	u.mu.Lock()
	defer u.mu.Unlock()

	fetch, request := provider.GetSpec().FetchConfig, provider.GetAnnotations()[v1alpha2.ReconcileRequestAnnotation]

	known := u.offers[provider.GetUID()]
	if known == nil || time.Since(known.asked) > offerAge || known.request != request ||
		!equality.Semantic.DeepEqual(known.from, fetch) {
		next := &offer{asked: time.Now(), from: fetch.DeepCopy(), request: request}
		if known != nil && equality.Semantic.DeepEqual(known.from, fetch) {
			next.releases, next.metadata, next.looked, next.moved = known.releases, known.metadata, known.looked, known.moved
		}

		if u.offers == nil {
			u.offers = map[types.UID]*offer{}
		}

		u.offers[provider.GetUID()] = next

		known = next
		go u.ask(context.WithoutCancel(ctx), provider.DeepCopyObject().(v1alpha2.Provider), next)
	}

	if known.metadata != nil {
		provider.GetStatus().AvailableUpgrades = known.upgrades(
			provider.GetStatus().InstalledVersion,
			func(contract string) bool {
				return u.Preflight.Contract(ctx, provider, contract) == nil
			},
		)
	}

	if chart := provider.GetStatus().Chart; known.moved != nil && chart != nil && known.moved.chart == *chart {
		return known.moved, true
	}

	return nil, known.looked
}

// ask asks the source and wakes the resource when there is something to tell, and again when it is
// time to look for moved tags.
func (u *Upgrades) ask(ctx context.Context, provider v1alpha2.Provider, into *offer) {
	ctx, cancel := context.WithTimeout(ctx, offerTimeout)
	defer cancel()

	from, err := u.Sources.Source(provider)
	if err != nil {
		return // the reconcile says so
	}

	moved, moveErr := lookForMove(ctx, from, provider)

	releases, metadata, err := source.List(ctx, from)
	for _, err := range []error{moveErr, err} {
		if err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("the source cannot be looked up", "error", err.Error())
		}
	}

	u.mu.Lock()
	if moveErr == nil {
		into.looked, into.moved = true, moved
	}

	if err == nil {
		into.releases, into.metadata = releases, metadata
	}
	u.mu.Unlock()

	if _, tagged := from.(source.TaggedSource); tagged {
		u.Wake(v1alpha2.Label(provider), provider.GetNamespace(), offerAge+time.Second)
	}

	if moveErr == nil || err == nil {
		u.Wake(v1alpha2.Label(provider), provider.GetNamespace(), 0)
	}
}

// forget drops what is known of a provider that is gone.
func (u *Upgrades) forget(provider v1alpha2.Provider) {
	u.mu.Lock()
	defer u.mu.Unlock()

	delete(u.offers, provider.GetUID())
}

// upgrades are the newest patch of the installed minor version and the newest of all, pre-releases
// aside, in that order.
func (o *offer) upgrades(installed *string, allowed func(contract string) bool) []v1alpha2.AvailableUpgrade {
	if installed == nil {
		return nil
	}

	current, err := semver.NewVersion(*installed)
	if err != nil {
		return nil
	}

	var patch, minor *v1alpha2.AvailableUpgrade

	for _, r := range o.releases { // newest first
		v, err := semver.NewVersion(r.Name)
		if err != nil || v.Prerelease() != "" || !v.GreaterThan(current) {
			continue
		}

		contract, err := o.metadata.Contract(r.Name)
		if err != nil || !allowed(contract) {
			continue
		}

		found := &v1alpha2.AvailableUpgrade{Version: r.Name, Contract: contract}
		if v.Major() == current.Major() && v.Minor() == current.Minor() {
			patch = found
			break
		}

		if minor == nil {
			minor = found
		}
	}

	var all []v1alpha2.AvailableUpgrade

	for _, upgrade := range []*v1alpha2.AvailableUpgrade{patch, minor} {
		if upgrade != nil {
			all = append(all, *upgrade)
		}
	}

	return all
}
