// Package removal removes a provider whose resource was deleted: its release, and what the
// resource's annotations ask for. CRDs, the namespace and users' objects stay otherwise.
package removal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/usage"
)

// blocked returns what keeps a provider from being removed until a user does something about it.
func blocked(format string, args ...any) error {
	return &problem.Error{Reason: v1alpha2.DeletionBlockedReason, Message: fmt.Sprintf(format, args...)}
}

// awaiting returns what the removal waits for, which ends without a user's help.
func awaiting(format string, args ...any) error {
	return &problem.Error{
		Reason: v1alpha2.DeletingReason, Outcome: problem.Waiting, Message: fmt.Sprintf(format, args...),
	}
}

// Found is what is installed.
type Found struct {
	// Readable is set if that could be read.
	Readable bool
	// Installed is set if there are objects to remove, Release if a release has to be uninstalled, and Foreign if it
	// belongs to something else.
	Installed, Release, Foreign bool
	// Terminating is set if the namespace is being deleted with all that it has.
	Terminating bool
	// Newest is the newest revision in Helm's storage, if that has the release.
	Newest state.Revision
	// Objects are those that the release has, or may have, and Complete is set if it has no others.
	Objects  []object.Key
	Complete bool
}

// Removal is one attempt to remove a provider. It may be repeated until it succeeds. The errors of its steps are
// *problem.Error, after Explain, if the removal has to wait.
type Removal struct {
	// Cache reads provider resources.
	Cache client.Reader
	// Cluster tells the clusters of providers apart.
	Cluster  preflight.ClusterOf
	Provider v1alpha2.Provider
	// Owner is how the resource is recorded as the owner of its release.
	Owner  state.Owner
	Target *clusters.Target
	// Progress returns what earlier attempts have found of a release whose inventory is lost, by its newest revision.
	Progress func(newest int) *apply.Progress
	// Uninstalled reports whether this or an earlier attempt has uninstalled the release.
	Uninstalled bool
	// Found is what is installed; zero before Find.
	Found Found
	// Unconfirmed is the newest revision of a release that stays because it is not known to be the resource's; 0 for none.
	Unconfirmed int
	// Unlisted is why objects of the release may stay behind that could not be found; nil if none do.
	Unlisted *apply.UnlistedError

	// release is the key of the release. ours is set once the resource is known to have installed it.
	release types.NamespacedName
	ours    bool
	// newest is the newest revision in Helm's storage; zero if that does not have the release.
	newest state.Revision
	// confirmed is set if that is known to be the resource's.
	confirmed bool
	// foreign is set if the release belongs to something else, and stays.
	foreign bool
	// objects are those that the release has, or may have.
	objects []object.Key
	// more is set if there are more than those that were searched for.
	more bool
	// terminating is set if the namespace and all that is in it is being deleted.
	terminating bool
}

// Explain adds advice to the error of a removal: for an account that lacks permissions, a policy that refuses a
// request, and objects that do not go away.
func (r *Removal) Explain(err error) error {
	if remaining := new(apply.RemainingError); errors.As(err, &remaining) {
		return awaiting(
			"%s; the provider's manager removes them, so the rest of the release stays until then; if it cannot, "+
				"remove the finalizers, or set the annotation %s: \"true\" to leave such objects behind",
			remaining, v1alpha2.DeleteInUseAnnotation)
	}

	if !apierrors.IsForbidden(err) {
		return err
	}

	reason := strings.TrimSuffix(err.Error(), object.Fix(err))
	if object.IsDenied(err) {
		return blocked("%s%s", reason, object.Fix(err))
	}

	return blocked(
		"%s; grant that permission, or remove the finalizer %s from this resource, which leaves release %s behind",
		reason, v1alpha2.Finalizer, r.release)
}

// CheckOthers keeps core until all other providers are uninstalled: without core, none of them works or
// can be removed in order.
func (r *Removal) CheckOthers(ctx context.Context) error {
	others, err := r.others(ctx, func(p v1alpha2.Provider) bool {
		mayBeInstalled := preflight.StandingOf(p).Installed || release.HasLostStatus(p)

		return p.ProviderType() != v1alpha2.CoreProviderType && mayBeInstalled
	})
	if err != nil || len(others) == 0 {
		return err
	}

	stay := func(p v1alpha2.Provider) bool { return p.GetDeletionTimestamp().IsZero() }
	if !slices.ContainsFunc(others, stay) {
		return awaiting("core is removed last, after %s", r.visibleNames(ctx, others))
	}

	return blocked("core is removed last; delete first: %s", r.visibleNames(ctx, others))
}

// CheckUse keeps the provider while there are objects that need it.
func (r *Removal) CheckUse(ctx context.Context) error {
	found, err := r.usage(ctx, usage.Query{
		Provider: v1alpha2.Label(r.Provider), CRDs: r.Provider.GetSpec().CRDs, Types: usage.ManagedTypes(r.Provider),
	})
	if err != nil || found.Unused() {
		return err
	}

	return blocked(
		"%s; delete them first, or set the annotation %s: \"true\" to leave them behind unmanaged",
		found.Message(), v1alpha2.DeleteInUseAnnotation)
}

// usage finds objects of providers' kinds that are not part of the release. It lists them as the
// provider's account. Objects that the account must not list are counted and not named.
func (r *Removal) usage(ctx context.Context, query usage.Query) (usage.Usage, error) {
	query.Ignored = r.objects
	finder := usage.Finder{Client: r.Target.CRDs.Client, Metadata: r.Target.CRDs.Metadata}

	if r.Target.Account != "" {
		finder.Counter = r.Target.Metadata
	}

	return finder.Find(ctx, query)
}

// Uninstall removes the release.
func (r *Removal) Uninstall(ctx context.Context) error {
	memory := state.Memory{Inventory: r.objects}
	options := release.UninstallOptions{Newest: r.newest, AtOnce: r.deletesAtOnce()}

	if !options.AtOnce {
		var err error
		if memory.Kinds, err = r.Target.CRDs.OwnKinds(ctx, v1alpha2.Label(r.Provider)); err != nil {
			return err
		}
	}

	if _, err := r.Target.Releases.Uninstall(ctx, r.release, memory, options); err != nil {
		return err
	}

	if r.more {
		return awaiting(
			"%d objects of release %s are deleted; there are more, which are searched for next", len(r.objects), r.release)
	}

	ctrl.LoggerFrom(ctx).Info("Uninstalled the release", "release", r.release.Name)

	r.Uninstalled = true
	r.objects = nil // what still exists was left to users

	return nil
}

// deletesAtOnce reports whether all objects are deleted at the same time. Otherwise those of the release's own kinds
// have to be gone before the manager, which processes their finalizers, is deleted. Nothing waits if a user does not
// want that, or if the manager is deleted with the namespace anyway.
func (r *Removal) deletesAtOnce() bool {
	return r.terminating || v1alpha2.Asks(r.Provider, v1alpha2.DeleteInUseAnnotation)
}
