package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/removal"
	"github.com/capstan-project/capstan/controllers/takeover"
)

// own adds the finalizer before an installation, or, once cluster-api-operator has stopped, takes the resource over
// from it.
func (r *run) own(ctx context.Context) error {
	switch {
	case takeover.PredecessorManages(r.provider):
		if err := takeover.CheckStopped(ctx, r.APIReader, r.provider); err != nil {
			return err
		}

		return r.takeOver(ctx)
	case !controllerutil.ContainsFinalizer(r.provider, v1alpha2.Finalizer):
		r.added = true
		return r.handOver(ctx, controllerutil.AddFinalizer)
	}

	return nil
}

// takeOver takes the resource over from cluster-api-operator: the status that this has left is none of Capstan's, and
// its finalizer would block the deletion.
func (r *run) takeOver(ctx context.Context) error {
	err := r.handOver(ctx, func(o client.Object, finalizer string) bool {
		added := controllerutil.AddFinalizer(o, finalizer)
		return takeover.ReleaseFinalizer(o) || added
	})
	if err == nil {
		r.emit(r.provider, takenOver())
		r.status.notice(ctx, r.provider,
			"waiting for the Helm release that adopts what cluster-api-operator has installed", false)
	}

	return err
}

// handOver changes whose resource it is. It is repeated soon if another program has changed the resource meanwhile.
func (r *run) handOver(ctx context.Context, set func(o client.Object, finalizer string) bool) error {
	err := r.setFinalizer(ctx, r.provider, set)
	r.status.changed(r.provider)

	if apierrors.IsConflict(err) {
		return endWith(Result{Outcome: Deferred, At: time.Now().Add(conflictRetry)})
	}

	return takeover.Refused(err)
}

// identify refuses a change of a resource that must not be installed, such as a second resource of the same provider.
func (r *run) identify(ctx context.Context) error {
	err := r.Preflight.Identity(ctx, r.provider, r.recorded(ctx))
	if err == nil && r.provider.GetStatus().Release == nil && r.memory.alone.IsZero() {
		err = r.checkInstalledElsewhere(ctx)
	}

	r.identified = err == nil

	return err
}

// checkInstalledElsewhere makes sure that the cluster has no release of the provider in another namespace,
// whose resource is not known: it may be in another cluster, or no longer exist.
func (r *run) checkInstalledElsewhere(ctx context.Context) error {
	key := plan.ReleaseKey(r.provider)

	namespace, err := r.target.InstalledElsewhere(ctx, key, r.installsBeside)
	if err != nil {
		return err
	}

	if namespace == "" {
		r.memory.alone = time.Now()
		return nil
	}

	return problem.Refuse(v1alpha2.MoreThanOneProviderInstanceExistsReason,
		"%s %s is already installed in the cluster, as Helm release %s/%s, and a cluster can have each "+
			"provider only once; delete this resource, or uninstall that release%s",
		r.provider.ProviderType(), r.provider.GetName(), namespace, key.Name, v1alpha2.InstallBesideHint(namespace))
}

// installsBeside reports whether the resource says that what looks like its provider in a namespace is none.
func (r *run) installsBeside(namespace string) bool {
	return v1alpha2.InstallsBeside(r.provider, namespace)
}

// recorded returns a function that reports whether Helm's storage in the target cluster has a release
// of a provider.
func (r *run) recorded(ctx context.Context) func(v1alpha2.Provider) bool {
	return func(p v1alpha2.Provider) bool { return r.target.HasRelease(ctx, plan.ReleaseKey(p)) }
}

// checkInstalled makes sure that no other program has installed the provider in another namespace: both
// would share CRDs, webhooks and cluster-wide permissions. In its own namespace it is adopted.
func (r *run) checkInstalled(ctx context.Context) error {
	finder := takeover.Finder{
		Metadata:    r.target.Metadata,
		Definitions: r.target.CRDs.Client,
		Restricted:  len(r.Scope.Namespaces) > 0,
		Ignored:     r.installsBeside,
	}
	label := v1alpha2.Label(r.provider)

	found, err := finder.Elsewhere(ctx, label, plan.ReleaseKey(r.provider))
	if err != nil || found == nil {
		return err
	}

	return problem.Refuse(v1alpha2.MoreThanOneProviderInstanceExistsReason,
		"%s is already installed in namespace %s, which was found by %s, and a cluster can have each "+
			"provider only once; to take it over, create the resource in that namespace instead, or else uninstall it there%s",
		label, found.Namespace, found.Claim, v1alpha2.InstallBesideHint(found.Namespace))
}

// leaveFormerCluster removes from the status what the provider has installed in another cluster than the one
// of the UID: the Secret has another kubeconfig, or the cluster was created again.
func (r *Reconciler) leaveFormerCluster(provider v1alpha2.Provider, now types.UID) {
	former := provider.GetStatus().Release
	if former == nil || former.ClusterUID == "" || now == "" || former.ClusterUID == string(now) {
		return
	}

	r.emit(provider, leftRelease(*former))

	status := provider.GetStatus()
	status.Release, status.InstalledVersion = nil, nil
	status.Objects, status.History = nil, nil
}

// checkOwner returns why the release that was observed must not be touched; nil if it may be.
func (r *run) checkOwner() error {
	look := r.installed.Look
	name := look.History.Release.String()

	switch {
	case r.ownedElsewhere() && !release.Adopts(r.provider):
		return ownedProblem(name)
	case release.IsForeign(r.provider, look.History, look.Record):
		return foreignProblem(name, look.Newest.Number, describeChart(look.Record))
	}

	return nil
}

// ownedElsewhere reports whether a resource in another cluster owns the release that was observed.
func (r *run) ownedElsewhere() bool {
	return r.installed.Owner.Excludes(r.self)
}

// ownedProblem is that of a release that belongs to a resource in another cluster.
func ownedProblem(name string) error {
	return problem.Refuse(v1alpha2.MoreThanOneProviderInstanceExistsReason,
		"Helm release %s was installed by a provider resource in another cluster, and a cluster can have each provider "+
			"only once; delete one of the two resources, or set the annotation %s: \"true\" on this one to take the "+
			"release over", name, v1alpha2.AdoptReleaseAnnotation)
}

// foreignProblem is that of a release that has the name of one that was created for something else. To upgrade that one
// would delete all of its objects.
func foreignProblem(name string, revision int, chart string) error {
	return problem.Fail(v1alpha2.InstallFailedReason,
		"Helm release %s was created by another program and is not this provider's: revision %d contains %s; uninstall "+
			"it or move it to another name, or set the annotation %s: \"true\" on this resource to replace it, which "+
			"deletes its objects that the provider does not have", name, revision, chart, v1alpha2.AdoptReleaseAnnotation)
}

// recordsLost reports whether objects of a release exist that has no records any more. If the release was
// uninstalled there are none, apart from those that an uninstall keeps or whose deletion takes a while.
// What cannot be read at the moment does not count.
func (r *run) recordsLost(ctx context.Context) bool {
	if len(r.installed.History.Revisions) > 0 {
		return false
	}

	remains, err := r.target.Releases.Remains(ctx, plan.ReleaseKey(r.provider), r.inventory())
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Looked for a part of the objects only, because records are lost", "problem", err.Error())
	}

	return remains
}

// findLost searches for the objects of a release whose status was lost, for example because the resource was restored
// without it: until a status was written, it is not known whether the resource had one. Until they are found, nothing
// is changed.
func (r *run) findLost(ctx context.Context) {
	if r.lost() {
		r.unfound = r.search(ctx)
	}
}

// findMade searches for what a newest revision of another program has installed, before it is replaced: its record is
// not believed, and the inventory does not have its objects.
func (r *run) findMade(ctx context.Context) error {
	if len(r.installed.History.Revisions) > 0 && !r.installed.isOwn() && !r.searched && r.unfound == nil {
		r.unfound = r.search(ctx)
	}

	return r.checkFound()
}

// search searches for the objects of the release by the marks that they bear. A search that is not complete is
// continued by the next reconcile.
func (r *run) search(ctx context.Context) (err error) {
	newest, _ := r.installed.History.Newest()

	r.found, err = removal.Search(ctx, r.provider, r.target, r.memory.searching(newest.Number))
	r.searched = err == nil

	return err
}

// checkFound stops a change while objects of the release are not known, unless it may bring the manager that these need
// to be found. What it drops of them is deleted afterwards.
func (r *run) checkFound() error {
	if unlisted := (*apply.UnlistedError)(nil); errors.As(r.unfound, &unlisted) && unlisted.NeedsManager() {
		return nil
	}

	return r.unfound
}

// lost reports whether it is not known which objects the release has, because the status was lost or does not say.
func (r *run) lost() bool {
	return r.unfound != nil || release.HasLostStatus(r.provider) && !r.added && !r.searched
}

// describeChart describes the chart of a record for messages.
func describeChart(record *release.Record) string {
	if record == nil {
		return "a chart that cannot be read"
	}

	return fmt.Sprintf("chart %s %s", record.ChartName, record.ChartVersion)
}
