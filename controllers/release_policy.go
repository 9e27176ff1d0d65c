package controllers

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// The defaults that the API documents.
const (
	defaultRetries = 3
	defaultTimeout = 5 * time.Minute
)

// policyOf is what the resource says about its release.
func policyOf(provider v1alpha2.Provider) state.Policy {
	spec := releaseSpec(provider.GetSpec())
	status := provider.GetStatus()

	return state.Policy{
		Retries:     int(ptr.Deref(spec.Retries, defaultRetries)),
		Timeout:     ptr.Deref(spec.Timeout, metav1.Duration{Duration: defaultTimeout}).Duration,
		Rollback:    spec.OnFailure != v1alpha2.FailureNone,
		Revert:      spec.OnExternalChange == v1alpha2.ExternalChangeRevert,
		Existed:     status.Release != nil,
		SpecChanged: provider.GetGeneration() != status.ObservedGeneration,
		Requested:   requested(provider),
		Now:         time.Now(),
	}
}

// releaseSpec is spec.release, empty if it is not set.
func releaseSpec(spec *v1alpha2.ProviderSpec) v1alpha2.ReleaseSpec {
	if spec.Release == nil {
		return v1alpha2.ReleaseSpec{}
	}

	return *spec.Release
}

// historyLimit is how many revisions are kept.
func historyLimit(spec *v1alpha2.ProviderSpec) int {
	return int(ptr.Deref(releaseSpec(spec).HistoryLimit, release.DefaultHistoryLimit))
}

// attemptFailed tells that the goal failed, why, what runs now and what follows.
func attemptFailed(g goal, run *running, choice state.Decision, failure error) *failedError {
	cause := strings.TrimPrefix(run.record.Description, fmt.Sprintf("Rollback to %d: ", run.revision.RollbackTo))
	if failure != nil {
		cause = failure.Error()
	}

	e := &failedError{
		reason:  v1alpha2.InstallFailedReason,
		until:   choice.Until,
		message: fmt.Sprintf("%s failed: %s", g.version, cause),
	}
	if attempts := run.observed.Attempts(g.digest); len(attempts) > 0 && attempts[0].Failure == state.FailureUnhealthy {
		e.reason = v1alpha2.TimedOutWaitingForDeploymentReason
	}

	if run.revision.Status != state.StatusDeployed {
		e.condition = v1alpha2.ProviderInstalledCondition
	} else if run.revision.RollbackTo != 0 {
		e.message += fmt.Sprintf("; %s runs again, as revision %d", run.record.AppVersion, run.revision.Number)
	}

	if choice.Action == state.Stop {
		e.message += fmt.Sprintf("; given up after %d attempts: change the resource, or its annotation %s, to try again",
			choice.Attempts, v1alpha2.ReconcileRequestAnnotation)
	}

	return e
}

// uninstalledByOthers tells that somebody uninstalled the release.
func uninstalledByOthers(g goal) error {
	return &externalChangeError{
		fmt.Sprintf("release %s was uninstalled by another program, and stays so until this resource changes; "+
			"to have it installed again, change the annotation %s or set spec.release.onExternalChange to Revert; to accept it, delete this resource",
			g.release, v1alpha2.ReconcileRequestAnnotation),
	}
}

// heldMessage tells that somebody changed the release, and how to accept or undo it.
func heldMessage(run *running) string {
	return fmt.Sprintf(
		"revision %d was made by another program (%s), and stays until this resource changes; to undo it, set "+
			"spec.release.onExternalChange to Revert; to accept it, set spec.version to %s",
		run.revision.Number,
		run.record.Description,
		run.record.AppVersion,
	)
}
