package provider

import (
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/acl"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/controllers/seats"
	"github.com/capstan-project/capstan/controllers/takeover"
	"github.com/capstan-project/capstan/controllers/values"
)

const (
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
	return onValue(func(_ E, result *Result) { set(result, condition, reason, outcome) })
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

// set fills in a result that has its message.
func set(result *Result, condition, reason string, outcome Outcome) {
	result.Condition = condition
	result.Reason = reason
	result.Outcome = outcome
}

// errorTable maps errors to results. The first row that matches counts.
var errorTable = []row{
	onValue(func(e *preflight.Error, result *Result) {
		set(result, preflightFailed, e.Reason, Stalled)

		if e.Waiting {
			result.Outcome = Waiting
			result.At = e.Until
		}
	}),

	// It is asked for later, whatever it is for.
	on[*seats.BusyError]("", v1alpha2.ProgressingReason, Retrying),

	// The resource is wrong, or something that it refers to, or is not Capstan's.
	onValue(func(e *takeover.RunningError, result *Result) {
		set(result, preflightFailed, v1alpha2.OtherOperatorRunningReason, Waiting)
		result.At = e.Until
	}),
	on[*takeover.RefusedError](preflightFailed, v1alpha2.ChangeRefusedReason, Stalled),
	on[*fetch.ConfigError](preflightFailed, v1alpha2.FetchConfigValidationErrorReason, Stalled),
	on[*ranges.Error](preflightFailed, v1alpha2.IncorrectVersionFormatReason, Stalled),
	on[*access.SecretNotFoundError](preflightFailed, v1alpha2.SecretNotFoundReason, Stalled),
	on[*clusters.KubeConfigError](preflightFailed, v1alpha2.KubeConfigErrorReason, Stalled),
	onValue(func(e *clusters.UnreachableError, result *Result) {
		set(result, "", v1alpha2.ClusterUnreachableReason, Waiting)
		result.At = e.Until
	}),
	onValue(func(e *access.ForbiddenError, result *Result) {
		set(result, preflightFailed, v1alpha2.MissingPermissionsReason, Stalled)
		result.Message = e.Error() // without the steps that led there
	}),
	onValue(func(e acl.AccessDeniedError, result *Result) {
		set(result, preflightFailed, v1alpha2.AccessDeniedReason, Stalled)
		result.Message = e.Error()
	}),
	{err: reflect.TypeFor[*apierrors.StatusError](), fill: notPermitted},
	onValue(func(e *unsafeError, result *Result) {
		set(result, v1alpha2.CRDsSafeCondition, v1alpha2.UnsafeCRDsReason, Stalled)

		if e.report.Untried() { // which the restart of a manager ends
			result.Reason, result.Outcome = v1alpha2.UnreadableObjectsReason, Retrying
		}
	}),
	onValue(func(e *crds.IncompatibleError, result *Result) {
		set(result, preflightFailed, v1alpha2.UnsupportedProviderDowngradeReason, Stalled)

		switch {
		case e.NewerVersion != "":
		case e.Missing:
			set(result, "", v1alpha2.WaitingForCRDsReason, Waiting)
		default:
			set(result, "", v1alpha2.IncompatibleCRDReason, Stalled)
		}
	}),
	on[*uncheckedError](preflightFailed, v1alpha2.UnsupportedProviderDowngradeReason, Stalled),
	on[*fetch.UnknownProviderError](installFailed, v1alpha2.UnknownProviderReason, Stalled),
	on[*bundle.InvalidError](installFailed, v1alpha2.InvalidComponentsReason, Stalled),
	on[*crds.RefusedError](installFailed, v1alpha2.CRDsNotReadyReason, Stalled),
	on[*crds.OwnershipError](installFailed, v1alpha2.CRDConflictReason, Stalled),
	on[*values.CustomizationError](installFailed, v1alpha2.ComponentsCustomizationErrorReason, Stalled),
	on[*values.ImagesError](installFailed, v1alpha2.ComponentsImageOverrideErrorReason, Stalled),
	onValue(func(e *manifest.Error, result *Result) {
		set(result, installFailed, v1alpha2.ComponentsPatchErrorReason, Stalled)
		result.Message = e.Error() // Helm wraps it in an error that quotes the manifest
	}),

	// The same chart and values would be refused again.
	on[*release.RenderError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*object.AnnotationError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*cluster.UnknownKindError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*ownedError](preflightFailed, v1alpha2.MoreThanOneProviderInstanceExistsReason, Stalled),
	on[*foreignError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*storage.ExcessError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*release.UnconfirmedError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*cluster.DryRunError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*cluster.ConflictError](installFailed, v1alpha2.InstallFailedReason, Stalled),
	on[*release.NoRevisionError](installFailed, v1alpha2.InstallFailedReason, Stalled),

	// The server of the source refuses, or the credentials for it are wrong.
	onValue(func(e *transport.Error, result *Result) {
		set(result, installFailed, v1alpha2.ComponentsFetchErrorReason, Stalled)

		switch e.Kind {
		case transport.Refused:
			set(result, preflightFailed, v1alpha2.FetchConfigValidationErrorReason, Stalled)
		case transport.InvalidToken:
			set(result, preflightFailed, v1alpha2.InvalidGithubTokenReason, Stalled)
		case transport.NotFound:
			result.Reason = v1alpha2.VersionNotFoundReason
		case transport.Invalid:
			result.Reason = v1alpha2.InvalidComponentsReason
		case transport.Unverified:
			result.Reason = v1alpha2.UntrustedSourceReason
		case transport.Unavailable, transport.Untrusted:
			result.Outcome = Retrying
		}

		if !e.Until.IsZero() {
			result.Outcome, result.At = Waiting, e.Until
		}
	}),

	// Passing troubles.
	onValue(func(e *cluster.UnlistedError, result *Result) {
		set(result, "", v1alpha2.ProgressingReason, Waiting)
		result.At = e.Until

		if e.Lasting() {
			set(result, installFailed, v1alpha2.InstallFailedReason, Stalled)
			result.At = time.Time{}
		}
	}),
	onValue(func(e *release.LockedError, result *Result) {
		set(result, installFailed, v1alpha2.ProgressingReason, Waiting)
		result.At = e.Until
	}),
	on[*health.UnconvertedError]("", v1alpha2.UnreadableObjectsReason, Retrying),
	on[*plan.StoreError](installFailed, v1alpha2.ChartStoreErrorReason, Retrying),
	on[*fetchError](installFailed, v1alpha2.ComponentsFetchErrorReason, Retrying),
}

// notPermitted completes the result of a request that the account, or without one the operator, may not make.
func notPermitted(err error, result *Result) bool {
	if !object.IsNotPermitted(err) {
		return false
	}

	set(result, preflightFailed, v1alpha2.MissingPermissionsReason, Stalled)

	if fix := object.Fix(err); !strings.HasSuffix(result.Message, fix) {
		result.Message += fix
	}

	return true
}

// fetchError is the error of finding out what the resource asks for.
type fetchError struct{ error }

func (e *fetchError) Unwrap() error { return e.error }

// resultOf returns the result of an error of a step: its own, or that of its row in the table, or else the same is
// tried again. Without an error the reconcile continues.
func resultOf(err error) Result {
	if err == nil {
		return Result{}
	}

	if ended := (*endedError)(nil); errors.As(err, &ended) {
		return ended.Result
	}

	result := Result{
		Outcome: Retrying, Condition: installFailed, Reason: v1alpha2.InstallFailedReason, Message: object.Text(err),
	}

	for _, row := range errorTable {
		if row.fill(err, &result) {
			break
		}
	}

	result.Limited = result.Outcome == Waiting || result.Outcome == Retrying

	return result
}
