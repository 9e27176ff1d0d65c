// Package removal removes a provider whose resource was deleted: its release, and what the
// resource's annotations ask for. CRDs, the namespace and users' objects stay otherwise.
package removal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/usage"
)

// BlockedError reports what keeps a provider from being removed, and what to do about it.
type BlockedError struct {
	Message string
	// Waiting is set if the removal continues without a user's help.
	Waiting bool
}

func (e *BlockedError) Error() string { return e.Message }

// Removal is one attempt to remove a provider. It may be repeated until it succeeds.
type Removal struct {
	// Cache reads provider resources.
	Cache    client.Reader
	Provider v1alpha2.Provider
	Target   *clusters.Target
	Charts   *plan.Charts
	// Uninstalled reports whether an earlier attempt has uninstalled the release.
	Uninstalled bool

	// release is the key of the release, installed whether there is one, and own its objects.
	release   types.NamespacedName
	installed bool
	// foreign is set if the release belongs to something else, and stays.
	foreign bool
	own     []object.Key
	// terminating is set if the namespace and all that is in it is being deleted.
	terminating bool
}

// Run removes the provider: first everything that could prevent it is checked, then the release is
// uninstalled, then CRDs and the namespace are deleted if annotations ask for it. The error is a
// *BlockedError if the removal has to wait.
func (r *Removal) Run(ctx context.Context) error {
	r.release = plan.ReleaseKey(r.Provider)

	for _, step := range []func(context.Context) error{
		r.observe,
		r.coreLast,
		r.notInUse,
		r.namespaceFree,
		r.uninstall,
		r.deleteCRDs,
		r.deleteNamespace,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}

	return nil
}

// asked reports whether the resource carries an annotation with the value "true".
func (r *Removal) asked(annotation string) bool {
	return r.Provider.GetAnnotations()[annotation] == "true"
}

// observe reads the release and the state of the namespace.
func (r *Removal) observe(ctx context.Context) error {
	history, err := r.Target.Releases.Observe(ctx, r.release)
	if err != nil {
		return err
	}

	newest, exists := history.Newest()
	r.foreign = r.Provider.GetStatus().Release == nil && history.Foreign()
	r.installed = exists && !r.foreign

	if r.installed {
		record, err := r.Target.Releases.Read(ctx, r.release, newest)

		corrupt := new(release.CorruptError)
		switch {
		case err == nil:
			r.own = record.Keys()
		case !errors.As(err, &corrupt): // uninstall deals with an unreadable record
			return err
		}
	}

	namespace := &corev1.Namespace{}
	err = r.Target.APIReader.Get(ctx, client.ObjectKey{Name: r.release.Namespace}, namespace)
	r.terminating = apierrors.IsNotFound(err) || !namespace.DeletionTimestamp.IsZero()

	return client.IgnoreNotFound(err)
}

// coreLast keeps core until all other providers are gone: without core, none of them works or can be
// removed in order.
func (r *Removal) coreLast(ctx context.Context) error {
	if r.Provider.ProviderType() != v1alpha2.CoreProviderType {
		return nil
	}

	others, err := r.others(ctx, func(p v1alpha2.Provider) bool {
		return p.ProviderType() != v1alpha2.CoreProviderType
	})
	if err != nil || len(others) == 0 {
		return err
	}

	return &BlockedError{Waiting: true, Message: "core is removed last; delete first: " + namesOf(others)}
}

// others returns the other providers of the cluster for which want is true. They must not be
// modified.
func (r *Removal) others(ctx context.Context, want func(v1alpha2.Provider) bool) ([]v1alpha2.Provider, error) {
	var found []v1alpha2.Provider

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()
		if err := r.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %s resources: %w", t, err)
		}

		for _, p := range list.GetItems() {
			sameCluster := v1alpha2.Cluster(p) == v1alpha2.Cluster(r.Provider)
			if p.GetUID() != r.Provider.GetUID() && sameCluster && want(p) {
				found = append(found, p)
			}
		}
	}

	return found, nil
}

// namesOf lists the names of the first of the providers.
func namesOf(providers []v1alpha2.Provider) string {
	const most = 5

	names := make([]string, 0, len(providers))
	for _, p := range providers {
		names = append(names, v1alpha2.FullName(p))
	}

	// The cache lists in random order, and a message that changes would be written each time.
	slices.Sort(names)

	return object.List(names, most)
}

// notInUse keeps the provider while there are objects that need it. Without a release nothing would
// be lost, and when the whole namespace goes nothing can be kept.
func (r *Removal) notInUse(ctx context.Context) error {
	if !r.installed || r.terminating || r.asked(v1alpha2.DeleteInUseAnnotation) {
		return nil
	}

	found, err := r.usage(ctx, usage.Query{Provider: v1alpha2.Label(r.Provider)})
	if err != nil || found.Unused() {
		return err
	}

	return &BlockedError{Message: fmt.Sprintf(
		"%s; delete them first, or set the annotation %s: \"true\" to leave them behind unmanaged",
		found.Message(), v1alpha2.DeleteInUseAnnotation)}
}

// usage finds objects of providers' kinds that are not part of the release. It lists them as the
// provider's account, which has the permission anyway: the operator itself need not read all kinds.
func (r *Removal) usage(ctx context.Context, query usage.Query) (*usage.Usage, error) {
	query.Own = r.own
	finder := usage.Finder{Client: r.Target.CRDs.Client, Metadata: r.Target.CRDs.Metadata}

	return finder.Find(ctx, query)
}

// uninstall removes the release and its charts.
func (r *Removal) uninstall(ctx context.Context) error {
	if !r.installed && r.Uninstalled {
		return nil
	}

	recorded := r.installed

	if r.installed {
		result, err := r.Target.Releases.Uninstall(ctx, r.release)
		corrupt := errors.As(err, new(*release.CorruptError))

		if err != nil && !corrupt {
			return err
		}

		// Without a revision, the records went with the namespace after they were observed.
		recorded = !corrupt && result.Revision != 0
	}

	if !recorded && !r.foreign {
		if err := r.sweep(ctx); err != nil {
			return err
		}
	}

	ctrl.LoggerFrom(ctx).Info("Uninstalled the release", "release", r.release.Name)

	if err := r.Charts.Delete(ctx, r.Provider); err != nil {
		return err
	}

	r.Uninstalled = true

	return nil
}

// sweep removes the objects of a release whose records cannot be read or are gone, perhaps with
// their namespace.
func (r *Removal) sweep(ctx context.Context) error {
	selector := labels.SelectorFromSet(labels.Set{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(r.Provider)})

	swept, err := r.Target.Releases.DeleteLeftovers(ctx, r.release, selector)
	if len(swept) > 0 {
		ctrl.LoggerFrom(ctx).Info("Removed the remaining objects of a release without records",
			"release", r.release.Name, "objects", len(swept))
	}

	return err
}
