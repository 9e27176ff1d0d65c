package reconcile

import (
	"errors"
	"net/http"
	"reflect"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/acl"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/web"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/patches"
	"github.com/capstan-project/capstan/controllers/permissions"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/predecessor"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/controllers/values"
)

// Outcome is how a step or a run ended, and with it what brings the resource back.
type Outcome int

const (
	// Continue is the outcome of a step after which the next one follows.
	Continue Outcome = iota
	// Ready means that the provider is what the resource asks for. It comes back by events, and at
	// Result.At for work in the background.
	Ready
	// Waiting means that an event, or Result.At, brings the resource back.
	Waiting
	// Stalled means that a user must change something. The resource still comes back, each time
	// later, because not every input is watched.
	Stalled
	// Retrying means that the same may succeed when it is tried again, with back-off.
	Retrying
	// Idle means that nothing is done, although the provider is not ready: it is suspended.
	Idle
	// Repeated means that the run was too early. It is repeated at Result.At, and writes nothing to the resource.
	Repeated
)

// Result is how a step or a run ended. The zero Result continues with the next step.
type Result struct {
	Outcome Outcome
	// Condition that is False besides Ready; empty for none.
	Condition string
	// Reason and Message of Ready.
	Reason, Message string
	// At is when to come back, if that is known.
	At time.Time
	// Err is the error behind Retrying.
	Err error
	// Limited is set if a user must look when this takes longer than spec.release.timeout: Waiting for
	// others, or Retrying. Since is since when, and Overdue is set once it does take longer.
	Limited, Overdue bool
	Since            time.Time
}

// Ends reports whether no step follows.
func (r Result) Ends() bool { return r.Outcome != Continue }

func (r *Result) set(condition, reason string, outcome Outcome) {
	r.Condition = condition
	r.Reason = reason
	r.Outcome = outcome
}

// waiting returns the result of a step that waits for an event, or for a time if that is not zero.
func waiting(reason, message string, at time.Time) Result {
	return Result{Outcome: Waiting, Reason: reason, Message: message, At: at}
}

// Between these bounds a problem that a user must solve is looked at again, each time after as long as
// it has existed.
const (
	minRetry = state.MinBackoff
	maxRetry = state.MaxBackoff
)

// The reasons of errors that no row of the table knows: errors of finding out what is asked for, and of
// applying it.
const (
	fetching        = v1alpha2.ComponentsFetchErrorReason
	applying        = v1alpha2.InstallFailedReason
	preflightFailed = v1alpha2.PreflightCheckCondition
	installFailed   = v1alpha2.ProviderInstalledCondition
)

// row maps one type of error to a result.
type row struct {
	err reflect.Type // of the error
	// fill completes the result if the error is, or wraps, one of the type; false if it is not.
	fill func(error, *Result) bool
}

// on returns the row of a type of error.
func on[E error](condition, reason string, outcome Outcome) row {
	return onValue(func(_ E, result *Result) { result.set(condition, reason, outcome) })
}

// onValue returns the row of a type of error whose result depends on the error's value.
func onValue[E error](fill func(E, *Result)) row {
	return row{err: reflect.TypeFor[E](), fill: func(err error, result *Result) bool {
		var e E
		if !errors.As(err, &e) {
			return false
		}

		fill(e, result)

		return true
	}}
}

// errorTable maps errors to results. The first row that matches counts.
var errorTable = []row{
	onValue(func(e *preflight.Error, result *Result) {
		result.set(preflightFailed, e.Reason, Stalled)

		if e.Waiting {
			result.Outcome = Waiting
			result.At = e.Until
		}
	}),

	// The resource is wrong, or something that it refers to, or is not Capstan's.
	onValue(func(e *predecessor.RunningError, result *Result) {
		result.set(preflightFailed, v1alpha2.OtherOperatorRunningReason, Waiting)
		result.At = e.Until
	}),
	on[*predecessor.RefusedError](preflightFailed, v1alpha2.ChangeRefusedReason, Stalled),
	on[*fetch.ConfigError](preflightFailed, v1alpha2.FetchConfigValidationErrorReason, Stalled),
	on[*ranges.Error](preflightFailed, v1alpha2.IncorrectVersionFormatReason, Stalled),
	onValue(func(e *web.AddressError, result *Result) {
		result.set(preflightFailed, v1alpha2.FetchConfigValidationErrorReason, Stalled)
		result.Message = e.Error() // a library may have added that the connection failed
	}),
	on[*source.AddressError](preflightFailed, v1alpha2.FetchConfigValidationErrorReason, Stalled),
	on[*access.SecretNotFoundError](preflightFailed, v1alpha2.SecretNotFoundReason, Stalled),
	on[*clusters.KubeConfigError](preflightFailed, v1alpha2.KubeConfigErrorReason, Stalled),
	onValue(func(e *clusters.UnreachableError, result *Result) {
		result.set("", v1alpha2.ClusterUnreachableReason, Waiting)
		result.At = e.Until
		result.Message = e.Error() // without the request that failed
	}),
	on[*permissions.MissingError](preflightFailed, v1alpha2.MissingPermissionsReason, Stalled),
	onValue(func(e *access.ForbiddenError, result *Result) {
		result.set(preflightFailed, v1alpha2.MissingPermissionsReason, Stalled)
		result.Message = e.Error() // without the steps that led there
	}),
	onValue(func(e acl.AccessDeniedError, result *Result) {
		result.set(preflightFailed, v1alpha2.AccessDeniedReason, Stalled)
		result.Message = e.Error()
	}),
	on[*unsafeError](v1alpha2.CRDsSafeCondition, v1alpha2.UnsafeCRDsReason, Stalled),
	onValue(func(e *crds.IncompatibleError, result *Result) {
		result.set(preflightFailed, v1alpha2.UnsupportedProviderDowngradeReason, Stalled)

		switch {
		case e.NewerVersion != "":
		case e.Missing:
			result.set("", v1alpha2.WaitingForCRDsReason, Waiting)
		default:
			result.set("", v1alpha2.IncompatibleCRDReason, Stalled)
		}
	}),
	on[*uncheckedError](preflightFailed, v1alpha2.UnsupportedProviderDowngradeReason, Stalled),
	on[*fetch.UnknownProviderError](installFailed, v1alpha2.UnknownProviderReason, Stalled),
	on[*source.NotFoundError](installFailed, v1alpha2.VersionNotFoundReason, Stalled),
	on[*source.UntrustedError](installFailed, v1alpha2.UntrustedSourceReason, Stalled),
	on[*bundle.InvalidError](installFailed, v1alpha2.InvalidComponentsReason, Stalled),
	on[*crds.RefusedError](installFailed, v1alpha2.CRDsNotReadyReason, Stalled),
	on[*crds.OwnershipError](installFailed, v1alpha2.CRDConflictReason, Stalled),
	on[*values.CustomizationError](installFailed, v1alpha2.ComponentsCustomizationErrorReason, Stalled),
	on[*values.ImagesError](installFailed, v1alpha2.ComponentsImageOverrideErrorReason, Stalled),
	onValue(func(e *patches.Error, result *Result) {
		result.set(installFailed, v1alpha2.ComponentsPatchErrorReason, Stalled)
		result.Message = e.Error() // Helm wraps it in an error that quotes the manifest
	}),

	// The same chart and values would be refused again.
	on[*release.RenderError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*object.AnnotationError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*cluster.UnknownKindError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*ownedError](preflightFailed, v1alpha2.MoreThanOneProviderInstanceExistsReason, Stalled),
	on[*foreignError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*storage.ExcessError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*unconfirmedError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*cluster.DryRunError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*cluster.ConflictError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*release.NoRevisionError](installFailed, v1alpha2.InstallFailedReason, Stalled),

	// The server of the source refuses, or the credentials for it are wrong.
	on[*web.CredentialsError](preflightFailed, v1alpha2.FetchConfigValidationErrorReason, Stalled),
	on[*source.InvalidTokenError](preflightFailed, v1alpha2.InvalidGithubTokenReason, Stalled),
	onValue(func(e *web.RateLimitError, result *Result) {
		result.set(installFailed, v1alpha2.ComponentsFetchErrorReason, Waiting)
		result.At = e.Until
	}),
	onValue(func(e *web.StatusError, result *Result) {
		result.set(installFailed, v1alpha2.ComponentsFetchErrorReason, Stalled)

		if e.Status >= http.StatusInternalServerError {
			result.Outcome = Retrying
		}
	}),
	on[*web.ContentError](installFailed, v1alpha2.ComponentsFetchErrorReason, Stalled),

	// Passing troubles.
	onValue(func(e *health.WatchError, result *Result) {
		result.set("", v1alpha2.ProgressingReason, Waiting)
		result.At = e.Until
	}),
	onValue(func(e *release.LockedError, result *Result) {
		result.set(installFailed, v1alpha2.ProgressingReason, Waiting)
		result.At = e.Until
	}),
	on[*plan.StoreError](installFailed, v1alpha2.ChartStoreErrorReason, Retrying),
}

// failed returns the result of an error: that of its row in the table, or Retrying with the reason of
// what the step was about. Without an error it continues.
func failed(err error, reason string) Result {
	if err == nil {
		return Result{}
	}

	result := Result{Outcome: Retrying, Condition: installFailed, Reason: reason, Message: err.Error()}

	for _, row := range errorTable {
		if row.fill(err, &result) {
			break
		}
	}

	if result.Outcome == Retrying {
		result.Err = err
	}

	result.Limited = result.Outcome == Waiting || result.Outcome == Retrying

	return result
}

// writeResult writes the result into Ready, Reconciling and Stalled, and returns when the resource
// comes back. A condition keeps the time of its last change, so the age of a problem is known without
// any state in memory.
func writeResult(provider v1alpha2.Provider, result Result) (ctrl.Result, error) {
	if result.Condition != "" {
		conditions.MarkFalse(provider, result.Condition, result.Reason, "%s", result.Message)
	}

	if result.Outcome == Ready {
		conditions.MarkTrue(provider, v1alpha2.ReadyCondition, result.Reason, "%s", result.Message)
	} else {
		conditions.MarkFalse(provider, v1alpha2.ReadyCondition, result.Reason, "%s", result.Message)
	}

	switch {
	case result.Outcome == Stalled, result.Overdue:
		conditions.MarkStalled(provider, result.Reason, "%s", result.Message)
	case result.Outcome == Waiting, result.Outcome == Retrying:
		conditions.MarkReconciling(provider, result.Reason, "%s", result.Message)
	default:
		conditions.Delete(provider, v1alpha2.ReconcilingCondition)
		conditions.Delete(provider, v1alpha2.StalledCondition)
	}

	if result.Limited {
		keepWaitingSince(provider.GetConditions(), result.Since)
	}

	switch result.Outcome {
	case Retrying:
		return ctrl.Result{}, result.Err
	case Stalled:
		return ctrl.Result{RequeueAfter: retryAfter(result, conditions.Get(provider, v1alpha2.ReadyCondition))}, nil
	default:
		return ctrl.Result{RequeueAfter: until(result.At)}, nil
	}
}
