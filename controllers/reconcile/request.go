package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// requested reports whether a user asks for a reconcile of everything, now.
func requested(provider v1alpha2.Provider) bool {
	return provider.GetAnnotations()[v1alpha2.ReconcileRequestAnnotation] != provider.GetStatus().LastHandledReconcileAt
}

// asked returns what the resource asks for, with the automatic upgrade that it has had since, if any.
func (r *run) asked() v1alpha2.RevisionRequest {
	asked := plan.Asked(r.provider)
	asked.AutomaticUpgrade = r.selection.Automatic

	return asked
}

// assess compares the release with the goal, or with the revision that stays although the goal differs.
func (r *run) assess() {
	wanted := decide.Wanted{
		History:        r.installed.history,
		Healthy:        r.installed.othersHealthy(),
		Policy:         r.policy,
		Asked:          r.asked(),
		Digest:         r.change.goal.digest,
		Inputs:         r.change.plan.Release.Inputs,
		Rules:          r.target.Releases.Rules(),
		OwnedElsewhere: r.ownedElsewhere(),
		Incomplete:     r.change.problem.Ends(),
	}

	for _, input := range []state.Difference{
		state.DifferentVariables, state.DifferentManifests, state.DifferentSource,
	} {
		// A rollback has no plan.
		if r.change.plan.Chart != nil && r.watched(input) {
			wanted.Watched = append(wanted.Watched, input)
		}
	}

	r.change.release = decide.Assess(wanted)
}

// markHandled notes with the newest revision that the resource asks for nothing else.
func (r *run) markHandled() { r.mark(func(newest *state.Revision) { newest.Request = r.asked() }) }

// mark notes that something has changed of the newest revision.
func (r *run) mark(change func(*state.Revision)) {
	change(&r.installed.revision)
	change(&r.installed.history.Revisions[0])

	r.noteMarks()
	r.recheck()
}

// noteMarks notes what is known of the newest revision. The status is written at the end: what a process that is killed
// before has found out, the next one finds out, too.
func (r *run) noteMarks() {
	if r.installed.record != nil {
		r.note(report.Marks(r.installed.revision))
	}
}

// recheckDelay lets the cache of resources see what was noted.
const recheckDelay = time.Second

// recheck brings a provider with automatic upgrades back after something was noted with its newest revision: an
// upgrade may follow only one that is healthy, and fulfills what the resource asks for.
func (r *run) recheck() {
	if offers.Automatic(r.provider.GetSpec()) {
		r.wakeAfter(recheckDelay)
	}
}

// planFailed ends the change with the problem that prevented the plan, unless what the resource asks for
// was installed before: the problem is then reported, but what is installed is as desired, and nothing
// is tried unless it fails.
func (r *run) planFailed(problem report.Result) report.Result {
	pin, pinned := r.installed.history.Pin(r.asked(), "", v1alpha2.RevisionInputs{}, r.watched)
	if !pinned {
		return problem
	}

	r.change.problem = problem
	r.change.goal = goal{version: pin.Version}

	return report.Result{}
}

// watched reports whether a change of an input takes effect at once.
func (r *run) watched(input state.Difference) bool {
	switch r.change.plan.InputKind(input) {
	case plan.KindSecret:
		return r.WatchSecrets
	case plan.KindConfigMap:
		return r.WatchConfigMaps
	}

	return false
}

// pendingMessage describes what has changed since the revision that stays was created.
func (r *run) pendingMessage() string {
	changes := make([]string, 0, len(r.change.release.Pin.Differences))
	for _, d := range r.change.release.Pin.Differences {
		changes = append(changes, r.change.plan.Describe(r.provider, d))
	}

	return fmt.Sprintf("%s since revision %d was created", strings.Join(changes, "; "), r.change.release.Pin.Number)
}

// versionOwner is the field manager that writes spec.version.
const versionOwner = v1alpha2.FieldOwner + "-version"

// writesVersion reports whether fields are managed by what writes spec.version.
func writesVersion(e metav1.ManagedFieldsEntry) bool { return e.Manager == versionOwner }

// writeVersion writes the version that was found into an empty spec.version. A version that a user has set instead is
// the user's: the operator's ownership would be a conflict for one who applies another one with server-side apply.
func (r *run) writeVersion(ctx context.Context) report.Result {
	switch {
	case r.change.plan.Chart == nil || r.change.plan.Version == "":
		return report.Result{}
	case r.provider.GetSpec().Version == "":
		return r.pinVersion(ctx)
	case slices.ContainsFunc(r.provider.GetManagedFields(), writesVersion):
		return r.disownVersion(ctx)
	}

	return report.Result{}
}

// pinVersion writes the version that an empty spec.version resolved to into the spec. A version that
// is set meanwhile is not overwritten.
func (r *run) pinVersion(ctx context.Context) report.Result {
	version := r.change.plan.Version
	changed := cloneProvider(r.provider) // as in setFinalizer
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"metadata":{"resourceVersion":%q},"spec":{"version":%q}}`, r.provider.GetResourceVersion(), version))

	err := r.Client.Patch(ctx, changed, patch, client.FieldOwner(versionOwner))
	if apierrors.IsNotFound(err) {
		return report.Result{}
	}

	if err != nil {
		return failed(fmt.Errorf("write version %s into spec.version: %w", version, err), fetching)
	}

	r.provider.GetSpec().Version = version
	r.provider.SetGeneration(changed.GetGeneration())
	r.status.changed(changed)

	return report.Result{}
}

// disownVersion removes pinVersion's ownership of the field. If it does not succeed, a later reconcile does it.
func (r *run) disownVersion(ctx context.Context) report.Result {
	changed := cloneProvider(r.provider)
	changed.SetManagedFields(slices.DeleteFunc(changed.GetManagedFields(), writesVersion))

	patch := client.MergeFromWithOptions(r.provider, client.MergeFromWithOptimisticLock{})

	err := r.Client.Patch(ctx, changed, patch, client.FieldOwner(v1alpha2.FieldOwner))
	if apierrors.IsConflict(err) {
		return report.Result{}
	}

	if err == nil {
		r.status.changed(changed)
	}

	return failed(client.IgnoreNotFound(err), fetching)
}
