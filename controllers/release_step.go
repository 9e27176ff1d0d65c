package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// maxReleaseName is Helm's limit.
const maxReleaseName = 53

// releaseName is the chart's name, cut with a hash where Helm does not take it whole.
func releaseName(label string) string {
	if len(label) <= maxReleaseName {
		return label
	}

	const hashLength = 12

	sum := sha256.Sum256([]byte(label))

	return strings.TrimRight(label[:maxReleaseName-hashLength-1], "-.") + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// nameOfRelease returns the name of a provider's release.
func nameOfRelease(provider v1alpha2.Provider) types.NamespacedName {
	return types.NamespacedName{Namespace: provider.GetNamespace(), Name: releaseName(v1alpha2.Label(provider))}
}

// goal is what a release should come to.
type goal struct {
	release types.NamespacedName
	// version is what people know it by.
	version string
	// digest stands for it in the release's history.
	digest string
	// action is what to reach it counts as, where there is a release already.
	action metrics.Action
	// reach takes the one action that leads there from a state.
	reach func(context.Context, state.Observed) (release.Result, error)
}

// running is what the release came to.
type running struct {
	// observed is the release, revision its newest one, record what that holds; nil if there is no
	// release.
	observed state.History
	revision state.Revision
	record   *release.Record
	// reached says that the revision is the goal.
	reached bool
	// held says that another program made it, and that this is respected.
	held bool
	// failed says that the goal failed, and what follows; nil if it did not.
	failed *failedError
}

// installGoal is the release that the resource describes.
func (r *Reconciler) installGoal(desired release.Spec) (goal, error) {
	digest, err := r.Releases.Digest(desired)
	if err != nil {
		return goal{}, &installError{err}
	}

	reach := func(ctx context.Context, found state.Observed) (release.Result, error) {
		if err := r.labelNamespace(ctx, desired.Release.Namespace, desired.Chart); err != nil {
			return release.Result{}, err
		}

		return r.Releases.Apply(ctx, desired, found)
	}

	return goal{desired.Release, desired.Chart.Metadata.AppVersion, digest, metrics.Upgrade, reach}, nil
}

// rollbackGoal is the revision that spec.release.rollbackTo names.
func (r *Reconciler) rollbackGoal(provider v1alpha2.Provider, revision int) goal {
	name := nameOfRelease(provider)
	target := release.RollbackOptions{
		Revision:     revision,
		Digest:       fmt.Sprintf("rollback-%d", revision),
		Reason:       "spec.release.rollbackTo",
		HistoryLimit: historyLimit(provider.GetSpec()),
	}
	reach := func(ctx context.Context, found state.Observed) (release.Result, error) {
		return r.Releases.Rollback(ctx, name, target, found)
	}

	return goal{
		name,
		fmt.Sprintf("revision %d", revision),
		target.Digest,
		metrics.Rollback,
		reach,
	}
}

// reachMost bounds the actions of one reconcile: an attempt, and the rollback after it.
const reachMost = 2

// release brings the release to the goal, or back to what was healthy when that fails, and tells
// what it has come to.
func (r *Reconciler) release(
	ctx context.Context,
	provider v1alpha2.Provider,
	g goal,
	policy state.Policy,
) (*running, error) {
	defer r.Metrics.Step(r.Type, metrics.StepRelease)()

	var failure error

	for actions := 0; ; actions++ {
		observed, err := r.Releases.Observe(ctx, g.release)
		if err != nil {
			return nil, &installError{err}
		}

		found := r.Releases.Determine(observed, g.digest)
		choice := state.Next(observed, g.digest, found, policy)

		acts := choice.Action == state.Apply || choice.Action == state.Rollback
		if !acts || actions == reachMost {
			return r.outcome(ctx, provider, g, observed, found, choice, failure)
		}

		err = r.act(ctx, provider, g, found, choice, failure)
		if err != nil && !leavesFailedRevision(err) {
			return nil, &installError{err}
		}

		if failure == nil {
			failure = err
		}

		policy.Requested, policy.Now = false, time.Now()
	}
}

// leavesFailedRevision reports whether an attempt has become a revision of the history, so that what
// follows can be decided by that.
func leavesFailedRevision(err error) bool {
	var (
		rejected    *release.RejectedError
		unavailable *release.UnavailableError
		remove      *release.RemoveError
	)

	return errors.As(err, &rejected) || errors.As(err, &unavailable) || errors.As(err, &remove)
}

// act takes one action.
func (r *Reconciler) act(
	ctx context.Context,
	provider v1alpha2.Provider,
	g goal,
	found state.Observed,
	choice state.Decision,
	failure error,
) error {
	log := ctrl.LoggerFrom(ctx).WithValues("release", g.release.Name, "version", g.version)
	log.Info("the release is to be changed", "state", found.State, "found", found.Message, "action", choice.String())

	status := provider.GetStatus()
	if found.State == state.Absent {
		status.Release = nil // whatever was known of it is over
	}

	var (
		result release.Result
		err    error
	)

	action := g.action
	if found.State == state.Absent {
		action = metrics.Install
	}

	if choice.Action == state.Rollback {
		action = metrics.Rollback
		result, err = r.rollBack(ctx, provider, g, found, choice.Revision, failure)
	} else {
		result, err = g.reach(ctx, found)
	}

	r.Metrics.Release(provider, action, err)
	r.Health.Verified(result.Applied)

	if result.Revision != 0 {
		log.Info("the release was changed", "revision", result.Revision, "status", result.Status)
	}

	return err
}

// rollBack returns to a revision that was healthy, and says why in the history.
func (r *Reconciler) rollBack(
	ctx context.Context,
	provider v1alpha2.Provider,
	g goal,
	found state.Observed,
	to state.Revision,
	failure error,
) (release.Result, error) {
	reason := g.version + " failed"
	if failure != nil {
		reason = failure.Error()
	} else if record, err := r.Releases.Read(ctx, g.release, found.Revision); err == nil {
		reason = record.Description
	}

	return r.Releases.Rollback(ctx, g.release, release.RollbackOptions{
		Revision:     to.Number,
		Reason:       reason,
		HistoryLimit: historyLimit(provider.GetSpec()),
	}, found)
}

// outcome reads what the release holds when there is nothing more to be done about it now, and says
// how it stands to the goal.
func (r *Reconciler) outcome(
	ctx context.Context,
	provider v1alpha2.Provider,
	g goal,
	observed state.History,
	found state.Observed,
	choice state.Decision,
	failure error,
) (*running, error) {
	run, err := r.record(ctx, provider, observed)
	if err != nil {
		return nil, err
	}

	run.reached = found.State == state.InSync

	run.held = choice.Action == state.Hold
	switch {
	case run.reached:
		markReached(provider, run)
	case run.held && run.record != nil:
	case run.held:
		return nil, uninstalledByOthers(g)
	case found.State == state.Locked:
		return nil, &installError{&release.LockedError{Message: found.Message, Until: found.Until}}
	case run.record == nil:
		return nil, &installError{
			fmt.Errorf("release %s was deleted just after it was applied; it will be installed again", g.release),
		}
	default:
		run.failed = attemptFailed(g, run, choice, failure)
		if provider.GetStatus().InstalledVersion != nil {
			conditions.MarkFalse(
				provider,
				v1alpha2.ProviderUpgradedCondition,
				v1alpha2.ComponentsUpgradeErrorReason,
				"%s",
				run.failed,
			)
		}
	}

	markInstalled(provider, run)

	return run, nil
}

// record writes what Helm's storage says into the status.
func (r *Reconciler) record(
	ctx context.Context,
	provider v1alpha2.Provider,
	observed state.History,
) (*running, error) {
	newest, exists := observed.Newest()
	if !exists {
		return &running{observed: observed}, nil
	}

	status := provider.GetStatus()
	status.Release = &v1alpha2.ReleaseStatus{
		Name:      observed.Release.Name,
		Namespace: observed.Release.Namespace,
		Revision:  int64(newest.Number),
		Status:    string(newest.Status),
	}
	status.History = history(observed)

	record, err := r.Releases.Read(ctx, observed.Release, newest)
	if err != nil {
		return nil, &installError{err}
	}

	return &running{observed: observed, revision: newest, record: record}, nil
}

// markReached says what the goal was: an upgrade, a pause.
func markReached(provider v1alpha2.Provider, run *running) {
	if run.revision.Number > 1 && provider.GetStatus().InstalledVersion != nil {
		conditions.MarkTrue(
			provider,
			v1alpha2.ProviderUpgradedCondition,
			v1alpha2.ProviderUpgradedReason,
			"Revision %d holds %s",
			run.revision.Number,
			run.record.AppVersion,
		)
	}

	if !provider.GetSpec().Paused {
		conditions.Delete(provider, v1alpha2.PausedCondition)
		return
	}

	conditions.MarkTrue(
		provider,
		v1alpha2.PausedCondition,
		v1alpha2.PausedReason,
		"The Deployments have no replicas; the annotation %s says how many they have otherwise",
		v1alpha2.PausedReplicasAnnotation,
	)
}

// markInstalled says what is installed.
func markInstalled(provider v1alpha2.Provider, run *running) {
	if run.revision.Status != state.StatusDeployed {
		return // conclude says why
	}

	held := ""
	if run.held {
		held = "; another program made it (" + run.record.Description + ")"
	}

	conditions.MarkTrue(provider, v1alpha2.ProviderInstalledCondition, v1alpha2.ProviderInstalledReason,
		"Release %s, revision %d, holds %s%s", run.observed.Release.Name, run.revision.Number, run.record.AppVersion, held)
}

// history is what `helm history` shows, newest first.
func history(observed state.History) []v1alpha2.ReleaseRevision {
	revisions := observed.Revisions[:min(len(observed.Revisions), v1alpha2.HistoryMaxItems)]

	entries := make([]v1alpha2.ReleaseRevision, 0, len(revisions))
	for _, r := range revisions {
		entries = append(entries, v1alpha2.ReleaseRevision{
			Revision:    int64(r.Number),
			Version:     r.Version,
			ChartDigest: r.ChartDigest,
			Status:      string(r.Status),
			Time:        metav1.NewTime(r.Created),
		})
	}

	return entries
}
