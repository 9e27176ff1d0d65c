package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/plan"
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

// comparison is what follows for the release from comparing it with the goal of a change.
type comparison struct {
	// Pin is the revision that stays although another one would be created now, if Pinned.
	Pin    state.Pin
	Pinned bool
	// Digest is the one that the release should have.
	Digest   string
	State    state.Observed
	Decision state.Decision
}

// Keeps reports whether the newest revision stays although another one would be created now.
func (c comparison) Keeps() bool { return c.Pinned && c.Decision.Action != state.Apply }

// assess compares the release with the goal, or with the revision that stays although the goal differs.
func (r *run) assess() {
	history, asked := r.installed.History, r.asked()
	// A rollback has no plan.
	watched := func(input state.Difference) bool { return r.change.plan.Chart != nil && r.watched(input) }

	found := comparison{Digest: r.change.goal.digest}

	found.Pin, found.Pinned = history.Pin(asked, found.Digest, r.change.plan.Release.Inputs, watched)
	if found.Pinned {
		found.Digest = found.Pin.ContentDigest
	}

	policy := r.policy
	policy.Requested = r.asksAgain(asked) || r.installed.recovered()

	found.State = state.Determine(history, found.Digest, r.target.Releases.Rules())
	found.Decision = state.Next(history, found.Digest, found.State, policy)

	// A new revision records the new owner.
	if r.ownedElsewhere() {
		found.Decision.Action = state.Apply
	}

	r.change.release = found
}

// asksAgain reports whether the resource asks for something since the newest revision that records a request. As long
// as there is none, the status tells.
func (r *run) asksAgain(asked v1alpha2.RevisionRequest) bool {
	last, recorded := r.installed.History.LastRequest()
	if !recorded {
		return r.policy.Requested || r.policy.SpecChanged && len(r.installed.History.Revisions) > 0
	}

	return last.Request != asked
}

// refreshes reports whether the source is read again although the chart is stored: for a request, until the source has
// answered it.
func (r *run) refreshes() bool {
	unavailable := v1alpha2.FindCondition(r.provider.GetConditions(), v1alpha2.InputsUnavailableCondition)
	return r.policy.Requested || unavailable.Status == metav1.ConditionTrue && r.asksAgain(r.asked())
}

// isHandled reports whether the newest revision fulfills the request, and is not known to do so yet. What changes later
// although the resource does not is then known not to be a request. A request by annotation is not handled while inputs
// are missing: it takes effect once they can be used.
func (r *run) isHandled() bool {
	newest, asked := r.installed.Newest, r.asked()
	action := r.change.release.Decision.Action
	handled := action == state.None || action == state.Hold
	missing := r.change.problem.Ends() && newest.Request.SameSpec(asked)

	return newest.Confirmed() && handled && !missing && newest.Request != asked
}

// rollbackPrefix begins the digest of a revision that spec.release.rollbackTo asked for.
const rollbackPrefix = "rollback-"

// rollbackDigest identifies the rollback to a revision that spec.release.rollbackTo asks for.
func rollbackDigest(revision int, paused bool) string {
	digest := fmt.Sprintf("%s%d", rollbackPrefix, revision)
	if paused {
		digest += "-paused"
	}

	return digest
}

// isAutomaticRollback reports whether Capstan rolled back to an earlier revision without being asked.
func isAutomaticRollback(revision state.Revision) bool {
	return revision.RollbackTo != 0 && !strings.HasPrefix(revision.ContentDigest, rollbackPrefix)
}

// attemptedDigest returns the digest of what Capstan last tried to install. A revision that it rolled back to
// automatically carries the digest of an earlier attempt.
func attemptedDigest(history state.History) string {
	for _, revision := range history.Revisions {
		if revision.Ours() && !isAutomaticRollback(revision) {
			return revision.ContentDigest
		}
	}

	return ""
}

// markHandled notes with the newest revision that the resource asks for nothing else.
func (r *run) markHandled() { r.mark(func(newest *state.Revision) { newest.Request = r.asked() }) }

// mark notes that something has changed of the newest revision.
func (r *run) mark(change func(*state.Revision)) {
	change(&r.installed.Newest)
	change(&r.installed.History.Revisions[0])

	r.noteMarks()
	r.recheck()
}

// noteMarks notes what is known of the newest revision. The status is written at the end: what a process that is killed
// before has found out, the next one finds out, too.
func (r *run) noteMarks() {
	if r.installed.Record != nil {
		state.Mark(r.provider.GetStatus(), r.installed.Newest)
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
func (r *run) planFailed(problem Result) error {
	pin, pinned := r.installed.History.Pin(r.asked(), "", v1alpha2.RevisionInputs{}, r.watched)
	if !pinned {
		return endWith(problem)
	}

	r.change.problem = problem
	r.change.goal = goal{version: pin.Version}

	return nil
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
func (r *run) writeVersion(ctx context.Context) error {
	switch {
	case r.change.plan.Chart == nil || r.change.plan.Version == "":
		return nil
	case r.provider.GetSpec().Version == "":
		return r.pinVersion(ctx)
	case slices.ContainsFunc(r.provider.GetManagedFields(), writesVersion):
		return r.disownVersion(ctx)
	}

	return nil
}

// pinVersion writes the version that an empty spec.version resolved to into the spec. A version that
// is set meanwhile is not overwritten.
func (r *run) pinVersion(ctx context.Context) error {
	version := r.change.plan.Version
	changed := cloneProvider(r.provider) // as in setFinalizer
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"metadata":{"resourceVersion":%q},"spec":{"version":%q}}`, r.provider.GetResourceVersion(), version))

	err := r.Client.Patch(ctx, changed, patch, client.FieldOwner(versionOwner))
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("write version %s into spec.version: %w", version, err)
	}

	r.provider.GetSpec().Version = version
	r.provider.SetGeneration(changed.GetGeneration())
	r.status.changed(changed)

	return nil
}

// disownVersion removes pinVersion's ownership of the field. If it does not succeed, a later reconcile does it.
func (r *run) disownVersion(ctx context.Context) error {
	changed := cloneProvider(r.provider)
	changed.SetManagedFields(slices.DeleteFunc(changed.GetManagedFields(), writesVersion))

	patch := client.MergeFromWithOptions(r.provider, client.MergeFromWithOptimisticLock{})

	err := r.Client.Patch(ctx, changed, patch, client.FieldOwner(v1alpha2.FieldOwner))
	if apierrors.IsConflict(err) {
		return nil
	}

	if err == nil {
		r.status.changed(changed)
	}

	return client.IgnoreNotFound(err)
}

// rollbackTo returns the revision that the resource asks for instead of a version; 0 for none.
func (r *run) rollbackTo() int {
	return ptr.Deref(plan.ReleaseSpec(r.provider.GetSpec()).RollbackTo, 0)
}

// asksFor reports whether a version is one that the resource asks for.
func (r *run) asksFor(version string) bool {
	if r.provider.GetSpec().Version == version {
		return true // also of a chart of other origin, whose version may be none
	}

	matches, err := ranges.Parse(r.provider.GetSpec().Version)
	if err != nil {
		return false
	}

	installed, err := semver.NewVersion(version)
	if err != nil {
		return r.provider.GetSpec().Version == ""
	}

	return matches(installed)
}
