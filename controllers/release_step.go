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
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/release"
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

// goal is what a release should come to.
type goal struct {
	namespace, name string
	// version is what people know it by.
	version string
	// digest stands for it in the release's history.
	digest string
	// action is what to reach it counts as, where there is a release already.
	action metrics.Action
	// reach takes the one action that leads there from a state.
	reach func(context.Context, release.State) (release.Result, error)
}

// running is what the release came to.
type running struct {
	// observed is the release, revision its newest one, record what that holds; nil if there is no
	// release.
	observed release.Observation
	revision release.Revision
	record   *release.Record
	// reached says that the revision is the goal.
	reached bool
	// held says that another program made it, and that this is respected.
	held bool
	// failed says that the goal failed, and what follows; nil if it did not.
	failed *failedError
}

// installGoal is the release that the resource describes.
func (r *Reconciler) installGoal(desired release.Desired) (goal, error) {
	digest, err := r.Releases.Digest(desired)
	if err != nil {
		return goal{}, &installError{err}
	}

	reach := func(ctx context.Context, state release.State) (release.Result, error) {
		if err := r.labelNamespace(ctx, desired.Namespace, desired.Chart); err != nil {
			return release.Result{}, err
		}

		return r.Releases.Apply(ctx, desired, state)
	}

	return goal{desired.Namespace, desired.Name, desired.Chart.Metadata.AppVersion, digest, metrics.ActionUpgrade, reach}, nil
}

// rollbackGoal is the revision that spec.release.rollbackTo names.
func (r *Reconciler) rollbackGoal(provider v1alpha2.Provider, revision int) goal {
	target := release.Return{
		Namespace: provider.GetNamespace(),
		Name:      releaseName(v1alpha2.Label(provider)),
		Revision:  revision,
		Digest: fmt.Sprintf(
			"rollback-%d",
			revision,
		),
		Reason:       "spec.release.rollbackTo",
		HistoryLimit: historyLimit(provider.GetSpec()),
	}
	reach := func(ctx context.Context, state release.State) (release.Result, error) {
		return r.Releases.Rollback(ctx, target, state)
	}

	return goal{
		target.Namespace,
		target.Name,
		fmt.Sprintf("revision %d", revision),
		target.Digest,
		metrics.ActionRollback,
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
	policy release.Policy,
) (*running, error) {
	defer r.Metrics.TimeStep(r.Type, metrics.StepRelease)()

	var failure error

	for actions := 0; ; actions++ {
		observed, err := r.Releases.Observe(ctx, g.namespace, g.name)
		if err != nil {
			return nil, &installError{err}
		}

		state := r.Releases.Decide(observed, g.digest)
		choice := release.Choose(observed, g.digest, state, policy)

		acts := choice.Verb == release.Act || choice.Verb == release.RollBack
		if !acts || actions == reachMost {
			return r.outcome(ctx, provider, g, observed, state, choice, failure)
		}

		err = r.act(ctx, provider, g, state, choice, failure)
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
	state release.State,
	choice release.Choice,
	failure error,
) error {
	log := ctrl.LoggerFrom(ctx).WithValues("release", g.name, "version", g.version)
	log.Info("the release is to be changed", "state", state.Condition, "found", state.Message, "action", choice.String())

	status := provider.GetStatus()
	if state.Condition == release.Absent {
		status.Release = nil // whatever was known of it is over
	}

	var (
		result release.Result
		err    error
	)

	action := g.action
	if state.Condition == release.Absent {
		action = metrics.ActionInstall
	}

	if choice.Verb == release.RollBack {
		action = metrics.ActionRollback
		result, err = r.rollBack(ctx, provider, g, state, choice.Revision, failure)
	} else {
		result, err = g.reach(ctx, state)
	}

	r.Metrics.CountReleaseAction(provider, action, err)
	r.Health.MarkVerified(result.Versions)

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
	state release.State,
	to release.Revision,
	failure error,
) (release.Result, error) {
	reason := g.version + " failed"
	if failure != nil {
		reason = failure.Error()
	} else if record, err := r.Releases.Read(ctx, g.namespace, g.name, state.Revision); err == nil {
		reason = record.Description
	}

	return r.Releases.Rollback(ctx, release.Return{
		Namespace:    g.namespace,
		Name:         g.name,
		Revision:     to.Number,
		Reason:       reason,
		HistoryLimit: historyLimit(provider.GetSpec()),
	}, state)
}

// outcome reads what the release holds when there is nothing more to be done about it now, and says
// how it stands to the goal.
func (r *Reconciler) outcome(
	ctx context.Context,
	provider v1alpha2.Provider,
	g goal,
	observed release.Observation,
	state release.State,
	choice release.Choice,
	failure error,
) (*running, error) {
	run, err := r.record(ctx, provider, observed)
	if err != nil {
		return nil, err
	}

	run.reached = state.Condition == release.InSync

	run.held = choice.Verb == release.Hold
	switch {
	case run.reached:
		markReached(provider, run)
	case run.held && run.record != nil:
	case run.held:
		return nil, uninstalledByOthers(g)
	case state.Condition == release.Pending:
		return nil, &installError{&release.PendingError{Message: state.Message, Until: state.Until}}
	case run.record == nil:
		return nil, &installError{
			fmt.Errorf("release %s/%s was deleted just after it was applied; it will be installed again", g.namespace, g.name),
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
	observed release.Observation,
) (*running, error) {
	newest, exists := observed.Newest()
	if !exists {
		return &running{observed: observed}, nil
	}

	status := provider.GetStatus()
	status.Release = &v1alpha2.ReleaseStatus{
		Name:      observed.Name,
		Namespace: observed.Namespace,
		Revision:  int64(newest.Number),
		Status:    string(newest.Status),
	}
	status.History = history(observed)

	record, err := r.Releases.Read(ctx, observed.Namespace, observed.Name, newest)
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
	if run.revision.Status != release.StatusDeployed {
		return // conclude says why
	}

	held := ""
	if run.held {
		held = "; another program made it (" + run.record.Description + ")"
	}

	conditions.MarkTrue(provider, v1alpha2.ProviderInstalledCondition, v1alpha2.ProviderInstalledReason,
		"Release %s, revision %d, holds %s%s", run.observed.Name, run.revision.Number, run.record.AppVersion, held)
}

// history is what `helm history` shows, newest first.
func history(observed release.Observation) []v1alpha2.ReleaseRevision {
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
