package removal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Find finds out what is installed, and whether the namespace is being deleted.
func (r *Removal) Find(ctx context.Context) error {
	r.release = plan.ReleaseKey(r.Provider)

	if err := r.observeNamespace(ctx); err != nil {
		return err
	}

	r.ours = r.Uninstalled || release.MayHaveInstalled(r.Provider)

	err := r.observeRecords(ctx)
	if err != nil && r.Target.Account != "" && apierrors.IsForbidden(err) {
		err = r.observeWithoutAccount(ctx, err)
	}

	if err == nil && !r.foreign {
		err = r.observeObjects(ctx)
	}

	r.Found = Found{
		Readable:    err == nil,
		Installed:   r.recorded() || len(r.objects) > 0,
		Release:     !r.foreign && (r.recorded() || !r.Uninstalled),
		Foreign:     r.foreign,
		Terminating: r.terminating,
	}

	if err == nil {
		r.Found.Newest, r.Found.Objects, r.Found.Complete = r.newest, r.objects, !r.more
	}

	return err
}

func (r *Removal) observeNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	err := r.Target.APIReader.Get(ctx, client.ObjectKey{Name: r.release.Namespace}, namespace)
	r.terminating = apierrors.IsNotFound(err) || !namespace.DeletionTimestamp.IsZero()

	// The user of a kubeconfig may lack this permission, which nothing else needs.
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}

	return err
}

// observeRecords reads the release from Helm's storage.
func (r *Removal) observeRecords(ctx context.Context) error {
	look, err := r.Target.Releases.Look(ctx, r.release, r.Provider, r.Owner)
	if err != nil {
		return err
	}

	newest := look.Newest

	// Another program may have replaced the release since.
	r.foreign = r.isForeign(look.History) || look.Owner.Excludes(r.Owner) ||
		release.IsForeign(r.Provider, look.History, look.Record)

	switch {
	case r.foreign, newest.Number == 0:
		return nil
	case r.isPlanted(newest):
		r.leave(newest)
		return nil
	}

	r.newest = newest
	r.ours = true

	// An uninstall that was interrupted may be this resource's.
	observed := r.Target.Releases.Determine(look.History, "")
	if observed.State == state.Locked && newest.Status.Pending() {
		return awaiting("%s", observed.Message)
	}

	// What cannot be read is not known to be the resource's.
	if r.confirmed = look.Record != nil && newest.Confirmed(); r.confirmed {
		r.objects = look.Record.Keys()
	}

	return nil
}

// recorded reports whether Helm's storage has the release.
func (r *Removal) recorded() bool { return r.newest.Number != 0 }

// isPlanted reports whether the newest revision is not the resource's, as far as is known. What is deleted follows from
// the inventory, so records of a release that the resource has installed are deleted with it, whatever they are. A
// resource whose status was lost does not know.
func (r *Removal) isPlanted(newest state.Revision) bool {
	lost := release.HasLostStatus(r.Provider) && newest.Ours()

	return !newest.Confirmed() && !r.ours && !lost
}

// leave leaves a release alone whose newest revision is not known to be the resource's.
func (r *Removal) leave(newest state.Revision) {
	r.foreign = true
	r.Unconfirmed = newest.Number
}

// isForeign reports whether a resource that has installed nothing finds a release that another program created.
func (r *Removal) isForeign(history state.History) bool {
	return r.Provider.GetStatus().Release == nil && history.Foreign()
}

// observeWithoutAccount decides what to do if the account must not read Helm's storage. Nothing has to
// be removed if neither the status nor the storage has the release; whether the storage has it is read
// with the operator's own permissions, because the status may have been lost. In a namespace that is
// being deleted, the account has probably lost only its RoleBindings there, and what is left outside of
// the namespace can be removed without records.
func (r *Removal) observeWithoutAccount(ctx context.Context, forbidden error) error {
	if !r.ours {
		stored, err := release.ReadHistory(ctx, r.Target.Metadata, r.release)
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}

		history := stored.Confirm(r.Provider.GetStatus())
		if r.foreign = r.isForeign(history); r.foreign {
			return nil
		}

		newest, exists := history.Newest()
		if exists && r.isPlanted(newest) {
			r.leave(newest)
			return nil
		}

		r.ours = exists
	}

	if r.ours && !r.terminating && !r.Uninstalled {
		return fmt.Errorf("release %s cannot be uninstalled: %w", r.release, forbidden)
	}

	return nil
}

// observeObjects completes the objects of the release by those of the inventory. What that may lack is searched for by
// its marks: everything if the status was lost, for example because the resource was restored without it, and the
// objects of a newest revision that another program has made.
func (r *Removal) observeObjects(ctx context.Context) error {
	if r.Uninstalled {
		return nil
	}

	r.objects = object.Union(r.objects, object.KeysOfInventory(r.Provider.GetStatus().Objects))

	if release.HasLostStatus(r.Provider) || r.recorded() && !r.confirmed {
		if err := r.search(ctx); err != nil {
			return err
		}
	}

	return r.checkRemains(ctx)
}

// search adds the objects that bear the release's marks. Objects of own kinds that only the provider's manager could
// convert, which does not run, stay behind if a user has accepted that for all objects of these kinds.
func (r *Removal) search(ctx context.Context) error {
	found, err := Search(ctx, r.Provider, r.Target, r.Progress(r.newest.Number))
	r.objects = object.Union(r.objects, found)

	unlisted := (*apply.UnlistedError)(nil)
	if !errors.As(err, &unlisted) {
		return err
	}

	leaves := r.terminating || v1alpha2.Asks(r.Provider, v1alpha2.DeleteInUseAnnotation)
	needsManager := unlisted.NeedsManager()

	switch {
	case len(unlisted.Kinds) == 0:
		r.more = true
		return nil
	case needsManager && leaves:
		r.more, r.Unlisted = unlisted.More, unlisted
		return nil
	case needsManager:
		return blocked(
			"%s; or set the annotation %s: \"true\" to leave such objects behind",
			unlisted, v1alpha2.DeleteInUseAnnotation)
	}

	if unlisted.Lasting() {
		return blocked("%s", unlisted)
	}

	return awaiting("%s", unlisted)
}

// checkRemains forgets objects that are deleted with their namespace, and those of a release without records if none of
// them exists: another program has uninstalled it.
func (r *Removal) checkRemains(ctx context.Context) error {
	if r.terminating {
		r.objects = slices.DeleteFunc(r.objects, func(o object.Key) bool { return o.Namespace == r.release.Namespace })
	}

	if r.recorded() {
		return nil
	}

	remains, err := r.Target.Releases.Remains(ctx, r.release, r.objects)
	if !remains && err == nil {
		r.objects = nil
	}

	r.ours = r.ours || remains

	return err
}

// searched are the kinds of objects that providers usually consist of.
var searched = []schema.GroupResource{
	{Resource: "configmaps"},
	{Resource: "persistentvolumeclaims"},
	{Resource: "secrets"},
	{Resource: "serviceaccounts"},
	{Resource: "services"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
	{Group: "apiregistration.k8s.io", Resource: "apiservices"},
	{Group: "apps", Resource: "daemonsets"},
	{Group: "apps", Resource: "deployments"},
	{Group: "apps", Resource: "statefulsets"},
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"},
	{Group: "batch", Resource: "cronjobs"},
	{Group: "batch", Resource: "jobs"},
	{Group: "cert-manager.io", Resource: "certificates"},
	{Group: "cert-manager.io", Resource: "issuers"},
	{Group: "monitoring.coreos.com", Resource: "podmonitors"},
	{Group: "monitoring.coreos.com", Resource: "servicemonitors"},
	{Group: "networking.k8s.io", Resource: "networkpolicies"},
	{Group: "policy", Resource: "poddisruptionbudgets"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"},
	{Group: "rbac.authorization.k8s.io", Resource: "roles"},
	{Group: "runtime.cluster.x-k8s.io", Resource: "extensionconfigs"},
	{Group: "scheduling.k8s.io", Resource: "priorityclasses"},
}

// Search returns the objects of a provider's release that bear its marks, whatever its inventory says. These are all if
// there is no error; see apply.Client.Search.
func Search(
	ctx context.Context, provider v1alpha2.Provider, target *clusters.Target, progress *apply.Progress,
) ([]object.Key, error) {
	label := v1alpha2.Label(provider)

	own, err := target.CRDs.OwnKinds(ctx, label)
	if err != nil {
		return nil, err
	}

	return target.Releases.Search(ctx, plan.ReleaseKey(provider), apply.Search{
		Selector:    labels.SelectorFromSet(labels.Set{v1alpha2.ClusterctlProviderLabel: label}),
		Resources:   searched,
		Own:         own,
		Reader:      target.Metadata,
		Definitions: target.CRDs.Client,
		Progress:    progress,
	})
}
