package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/usage"
)

// longestBlock is how long a removal that cannot go on waits at most until it looks again: users'
// objects are not watched.
const longestBlock = 30 * time.Second

// blockedError says what keeps a provider from being removed, and what to do about it.
type blockedError struct {
	message string
	// waiting says that it will pass by itself; otherwise a person must act.
	waiting bool
	again   time.Time
}

func (e *blockedError) Error() string { return e.message }

func (e *blockedError) outcome() outcome {
	o := outcome{reason: v1alpha2.DeletionBlockedReason, message: e.message, next: nextInput, at: e.again}
	if e.waiting {
		o.next = nextEvent
	}

	return o
}

// removal is one look at a resource that is to be removed.
type removal struct {
	*Reconciler
	provider v1alpha2.Provider
	// release is the name of the resource's release, installed says that there is one, and own are
	// its objects.
	release   string
	installed bool
	own       []release.Object
	// vanishing says that somebody is deleting the namespace and all that is in it.
	vanishing bool
}

// remove takes the provider out of the cluster: first all that speaks against it, then the release,
// then what the resource's annotations ask for. CRDs, the namespace and everybody's objects stay
// otherwise. Whatever keeps it from going on is said in Ready, and looked at again within seconds.
func (r *Reconciler) remove(ctx context.Context, provider v1alpha2.Provider) error {
	if !controllerutil.ContainsFinalizer(provider, v1alpha2.Finalizer) {
		return nil
	}

	defer r.Metrics.Step(r.Type, metrics.StepRemove)()

	if conditions.GetReason(provider, v1alpha2.ReadyCondition) != v1alpha2.DeletionBlockedReason {
		conditions.MarkFalse(provider, v1alpha2.ReadyCondition, v1alpha2.DeletingReason, "The provider is being removed")
	}

	err := (&removal{Reconciler: r, provider: provider, release: releaseName(v1alpha2.Label(provider))}).run(ctx)
	if err == nil {
		r.Targets.Forget(provider)
		r.Permitted.Delete(provider.GetUID())
		r.Metrics.Forget(provider)

		return r.setFinalizer(ctx, provider, controllerutil.RemoveFinalizer)
	}

	blocked := new(blockedError)
	if !errors.As(err, &blocked) {
		ctrl.LoggerFrom(ctx).Error(err, "the provider cannot be removed; it is tried again")
		blocked = &blockedError{message: err.Error(), waiting: true}
	}

	age := time.Since(provider.GetDeletionTimestamp().Time)
	blocked.again = time.Now().Add(min(max(age, shortestRetry), longestBlock))

	return blocked
}

func (r *removal) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.observe, r.coreLast, r.notInUse, r.namespaceFree, r.uninstall, r.deleteCRDs, r.deleteNamespace,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}

	return nil
}

// asked reports whether the resource carries an annotation with the value "true".
func (r *removal) asked(annotation string) bool {
	return r.provider.GetAnnotations()[annotation] == "true"
}

func (r *removal) observe(ctx context.Context) error {
	observed, err := r.Releases.Observe(ctx, r.provider.GetNamespace(), r.release)
	if err != nil {
		return err
	}

	var newest release.Revision
	if newest, r.installed = observed.Newest(); r.installed {
		record, err := r.Releases.Read(ctx, r.provider.GetNamespace(), r.release, newest)

		corrupt := new(release.CorruptError)
		switch {
		case err == nil:
			r.own = names(record)
		case !errors.As(err, &corrupt): // which uninstall knows how to deal with
			return err
		}
	}

	namespace := &corev1.Namespace{}
	err = r.APIReader.Get(ctx, client.ObjectKey{Name: r.provider.GetNamespace()}, namespace)
	r.vanishing = apierrors.IsNotFound(err) || !namespace.DeletionTimestamp.IsZero()

	return client.IgnoreNotFound(err)
}

// coreLast keeps core until all other providers are gone: none can work, or be removed in order,
// without it.
func (r *removal) coreLast(ctx context.Context) error {
	if r.Type != v1alpha2.CoreProviderType {
		return nil
	}

	others, err := r.others(ctx, func(p v1alpha2.Provider) bool { return p.ProviderType() != v1alpha2.CoreProviderType })
	if err != nil || len(others) == 0 {
		return err
	}

	return &blockedError{waiting: true, message: "core is removed last; delete first: " + namesOf(others)}
}

// others are the other providers' resources that are wanted. They must not be changed.
func (r *removal) others(ctx context.Context, want func(v1alpha2.Provider) bool) ([]v1alpha2.Provider, error) {
	var found []v1alpha2.Provider

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()
		if err := r.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %s resources: %w", t, err)
		}

		for _, p := range list.GetItems() {
			if p.GetUID() != r.provider.GetUID() && v1alpha2.Cluster(p) == v1alpha2.Cluster(r.provider) && want(p) {
				found = append(found, p)
			}
		}
	}

	return found, nil
}

// namesOf names some of the providers.
func namesOf(providers []v1alpha2.Provider) string {
	all := make([]string, 0, len(providers))
	for _, p := range providers {
		all = append(all, fmt.Sprintf("%s %s/%s", p.ProviderType(), p.GetNamespace(), p.GetName()))
	}

	slices.Sort(all) // caches list in any order, and a message that changes each time would be written each time

	return strings.Join(some(all), ", ")
}

// notInUse keeps the provider while there are objects that need it. It guards a release: without
// one nothing would be lost, nor can anything be kept when the whole namespace goes.
func (r *removal) notInUse(ctx context.Context) error {
	if !r.installed || r.vanishing || r.asked(v1alpha2.DeleteInUseAnnotation) {
		return nil
	}

	found, err := r.usage(ctx, usage.Query{Provider: v1alpha2.Label(r.provider)})
	if err != nil || found.None() {
		return err
	}

	return &blockedError{message: fmt.Sprintf(
		"%s; delete them first, or set the annotation %s: \"true\" to leave them behind with nothing to look after them",
		found.Message(),
		v1alpha2.DeleteInUseAnnotation,
	)}
}

// usage finds objects of providers' kinds that are not the release's own.
func (r *removal) usage(ctx context.Context, query usage.Query) (*usage.Usage, error) {
	query.Own = r.own
	finder := usage.Finder{Definitions: r.CRDs.Reader, Objects: r.Metadata}

	return finder.Find(ctx, query)
}

// uninstall removes the release.
func (r *removal) uninstall(ctx context.Context) error {
	if !r.installed &&
		conditions.GetReason(r.provider, v1alpha2.ProviderInstalledCondition) == v1alpha2.UninstalledReason {
		return nil
	}

	unreadable := !r.installed
	if r.installed {
		_, err := r.Releases.Uninstall(ctx, r.provider.GetNamespace(), r.release)
		if unreadable = errors.As(err, new(*release.CorruptError)); err != nil && !unreadable {
			return err
		}
	}

	if unreadable {
		if err := r.sweep(ctx); err != nil {
			return err
		}
	}

	ctrl.LoggerFrom(ctx).Info("uninstalled", "release", r.release)

	if err := r.Charts.Delete(ctx, r.provider); err != nil {
		return err
	}

	r.Upgrades.forget(r.provider)
	status := r.provider.GetStatus()
	status.Release, status.History, status.Chart = nil, nil, nil

	conditions.MarkFalse(
		r.provider,
		v1alpha2.ProviderInstalledCondition,
		v1alpha2.UninstalledReason,
		"Release %s is uninstalled",
		r.release,
	)

	return nil
}

// sweep removes a release whose records are gone, with its namespace perhaps, or cannot be read.
func (r *removal) sweep(ctx context.Context) error {
	selector := labels.SelectorFromSet(labels.Set{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(r.provider)})

	swept, err := r.Releases.Sweep(ctx, r.provider.GetNamespace(), r.release, selector)
	if len(swept) > 0 {
		ctrl.LoggerFrom(ctx).
			Info("removed what was left of a release without records", "release", r.release, "objects", len(swept))
	}

	return err
}

// namespaceFree keeps the namespace, and the provider with it, while something else lives in it
// that its deletion would take along.
func (r *removal) namespaceFree(ctx context.Context) error {
	if r.vanishing || !r.asked(v1alpha2.DeleteNamespaceAnnotation) {
		return nil
	}

	namespace := r.provider.GetNamespace()
	refuse := func(what string) error {
		return &blockedError{
			message: fmt.Sprintf(
				"namespace %s is not deleted while other things live in it: %s; remove them first, or remove the annotation %s to keep the namespace",
				namespace,
				what,
				v1alpha2.DeleteNamespaceAnnotation,
			),
		}
	}

	neighbours, err := r.others(ctx, func(p v1alpha2.Provider) bool { return p.GetNamespace() == namespace })
	if err != nil {
		return err
	}

	staying := slices.DeleteFunc(
		slices.Clone(neighbours),
		func(p v1alpha2.Provider) bool { return !p.GetDeletionTimestamp().IsZero() },
	)
	if len(staying) > 0 {
		return refuse(namesOf(staying))
	}

	releases, err := r.Releases.Names(ctx, namespace)
	if err != nil {
		return err
	}

	for _, p := range append(neighbours, r.provider) {
		own := releaseName(v1alpha2.Label(p))
		releases = slices.DeleteFunc(releases, func(name string) bool { return name == own })
	}

	if len(releases) > 0 {
		return refuse("Helm releases " + strings.Join(releases, ", "))
	}

	found, err := r.usage(ctx, usage.Query{Namespace: namespace})
	if err != nil || found.None() {
		return err
	}

	return refuse(found.Message())
}
