package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
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

// release makes the Helm release what is desired, if it is not, and gives the record of its current revision.
func (r *Reconciler) release(ctx context.Context, provider v1alpha2.Provider, desired release.Desired) (*release.Record, error) {
	observed, err := r.Releases.Observe(ctx, desired.Namespace, desired.Name)
	if err != nil {
		return nil, &installError{err}
	}
	digest, err := r.Releases.Digest(desired)
	if err != nil {
		return nil, &installError{err}
	}
	state := r.Releases.Decide(observed, digest)
	act, err := worthActing(provider, observed, state, digest)
	if err != nil {
		return nil, err
	}
	if act {
		if observed, err = r.act(ctx, provider, desired, state); err != nil {
			return nil, err
		}
	}
	return r.record(ctx, provider, observed)
}

// worthActing says whether the release is to be changed now. A person's own upgrade or rollback is respected until the
// resource asks for something else than it did before; what failed is tried again, each time later, or when a person
// asks for it.
func worthActing(provider v1alpha2.Provider, observed release.Observation, state release.State, digest string) (bool, error) {
	switch state.Condition {
	case release.InSync:
		return false, nil
	case release.Foreign:
		for _, revision := range observed.Revisions {
			if revision.Ours() {
				return revision.Digest != digest, nil
			}
		}
		return true, nil
	case release.Failed:
		until := state.Revision.Changed.Add(failedWait(observed, digest))
		if time.Now().After(until) || requested(provider) {
			return true, nil
		}
		message := state.Message
		if c := conditions.Get(provider, v1alpha2.ProviderInstalledCondition); c != nil && c.Reason == v1alpha2.InstallFailedReason {
			message = c.Message
		}
		return false, &failedError{message: message, until: until}
	default:
		return true, nil
	}
}

// failedWait doubles with each attempt that failed in a row.
func failedWait(observed release.Observation, digest string) time.Duration {
	wait := shortestRetry
	for _, revision := range observed.Revisions {
		if revision.Status != release.StatusFailed || revision.Digest != digest {
			break
		}
		wait = min(2*wait, longestRetry)
	}
	return wait
}

// act takes the one action that the release's state asks for and looks at the release again.
func (r *Reconciler) act(ctx context.Context, provider v1alpha2.Provider, desired release.Desired, state release.State) (release.Observation, error) {
	log := ctrl.LoggerFrom(ctx).WithValues("release", desired.Name, "version", desired.Chart.Metadata.AppVersion)
	log.Info("the release is to be changed", "state", state.Condition, "found", state.Message)
	if err := r.labelNamespace(ctx, desired.Namespace, desired.Chart); err != nil {
		return release.Observation{}, &installError{err}
	}
	upgraded := state.Condition != release.Absent && provider.GetStatus().InstalledVersion != nil
	result, err := r.Releases.Apply(ctx, desired, state)
	if err != nil {
		if upgraded {
			conditions.MarkFalse(provider, v1alpha2.ProviderUpgradedCondition, v1alpha2.ComponentsUpgradeErrorReason, "%s", err)
		}
		return release.Observation{}, &installError{err}
	}
	log.Info("the release was changed", "revision", result.Revision, "status", result.Status)
	if upgraded {
		conditions.MarkTrue(provider, v1alpha2.ProviderUpgradedCondition, v1alpha2.ProviderUpgradedReason, "Upgraded to %s", desired.Chart.Metadata.AppVersion)
	}
	return r.Releases.Observe(ctx, desired.Namespace, desired.Name)
}

// record writes what Helm's storage says into the status and gives the record of the current revision.
func (r *Reconciler) record(ctx context.Context, provider v1alpha2.Provider, observed release.Observation) (*release.Record, error) {
	newest, exists := observed.Newest()
	if !exists {
		return nil, &installError{fmt.Errorf("release %s/%s was deleted just after it was applied; it will be installed again", observed.Namespace, observed.Name)}
	}
	status := provider.GetStatus()
	status.Release = &v1alpha2.ReleaseStatus{Name: observed.Name, Namespace: observed.Namespace, Revision: int64(newest.Number), Status: string(newest.Status)}
	status.History = history(observed)
	record, err := r.Releases.Read(ctx, observed.Namespace, observed.Name, newest)
	if err != nil {
		return nil, &installError{err}
	}
	held := ""
	if !newest.Ours() {
		held = "; a person changed it with helm (" + record.Description + "), which stays until this resource changes"
	}
	conditions.MarkTrue(provider, v1alpha2.ProviderInstalledCondition, v1alpha2.ProviderInstalledReason,
		"Release %s, revision %d, holds %s%s", observed.Name, newest.Number, record.AppVersion, held)
	return record, nil
}

// health reads the objects' health from the watches; these bring the resource back when it changes.
func (r *Reconciler) health(ctx context.Context, provider v1alpha2.Provider, record *release.Record) error {
	objects := make([]release.Object, 0, len(record.Objects))
	for _, o := range record.Objects {
		objects = append(objects, release.Object{GroupVersionKind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	report, err := r.Health.Check(ctx, objects)
	if err != nil {
		return &installError{err}
	}
	status := provider.GetStatus()
	version := record.AppVersion
	if report.Healthy() {
		status.InstalledVersion = &version
		conditions.MarkTrue(provider, v1alpha2.ReadyCondition, v1alpha2.HealthyReason, "%s %s is installed and healthy", v1alpha2.Label(provider), version)
		return nil
	}
	reason := v1alpha2.ProgressingReason
	if report.Failed || status.InstalledVersion != nil && *status.InstalledVersion == version {
		reason = v1alpha2.UnhealthyReason
	}
	return &progress{reason: reason, message: report.Message()}
}

// history is what `helm history` shows, newest first.
func history(observed release.Observation) []v1alpha2.ReleaseRevision {
	revisions := observed.Revisions[:min(len(observed.Revisions), v1alpha2.HistoryMaxItems)]
	entries := make([]v1alpha2.ReleaseRevision, 0, len(revisions))
	for _, r := range revisions {
		entries = append(entries, v1alpha2.ReleaseRevision{
			Revision: int64(r.Number), Version: r.Version, ChartDigest: r.ChartDigest, Status: string(r.Status), Time: metav1.NewTime(r.Created),
		})
	}
	return entries
}
