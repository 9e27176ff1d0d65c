package reconcile

import (
	"errors"
	"reflect"
	"strings"

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
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/controllers/takeover"
	"github.com/capstan-project/capstan/controllers/values"
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
	fill func(error, *report.Result) bool
}

// on returns the row of a type of error.
func on[E error](condition, reason string, outcome report.Outcome) row {
	return onValue(func(_ E, result *report.Result) { set(result, condition, reason, outcome) })
}

// onValue returns the row of a type of error whose result depends on the error's value.
func onValue[E error](fill func(E, *report.Result)) row {
	return row{err: reflect.TypeFor[E](), fill: func(err error, result *report.Result) bool {
		var e E
		if !errors.As(err, &e) {
			return false
		}

		fill(e, result)

		return true
	}}
}

// set fills in a result that has its message.
func set(result *report.Result, condition, reason string, outcome report.Outcome) {
	result.Condition = condition
	result.Reason = reason
	result.Outcome = outcome
}

// errorTable maps errors to results. The first row that matches counts.
var errorTable = []row{
	onValue(func(e *preflight.Error, result *report.Result) {
		set(result, preflightFailed, e.Reason, report.Stalled)

		if e.Waiting {
			result.Outcome = report.Waiting
			result.At = e.Until
		}
	}),

	// The resource is wrong, or something that it refers to, or is not Capstan's.
	onValue(func(e *takeover.RunningError, result *report.Result) {
		set(result, preflightFailed, v1alpha2.OtherOperatorRunningReason, report.Waiting)
		result.At = e.Until
	}),
	on[*takeover.RefusedError](preflightFailed, v1alpha2.ChangeRefusedReason, report.Stalled),
	on[*fetch.ConfigError](preflightFailed, v1alpha2.FetchConfigValidationErrorReason, report.Stalled),
	on[*ranges.Error](preflightFailed, v1alpha2.IncorrectVersionFormatReason, report.Stalled),
	on[*access.SecretNotFoundError](preflightFailed, v1alpha2.SecretNotFoundReason, report.Stalled),
	on[*clusters.KubeConfigError](preflightFailed, v1alpha2.KubeConfigErrorReason, report.Stalled),
	onValue(func(e *clusters.UnreachableError, result *report.Result) {
		set(result, "", v1alpha2.ClusterUnreachableReason, report.Waiting)
		result.At = e.Until
	}),
	onValue(func(e *access.ForbiddenError, result *report.Result) {
		set(result, preflightFailed, v1alpha2.MissingPermissionsReason, report.Stalled)
		result.Message = e.Error() // without the steps that led there
	}),
	onValue(func(e acl.AccessDeniedError, result *report.Result) {
		set(result, preflightFailed, v1alpha2.AccessDeniedReason, report.Stalled)
		result.Message = e.Error()
	}),
	{err: reflect.TypeFor[*apierrors.StatusError](), fill: notPermitted},
	on[*unsafeError](v1alpha2.CRDsSafeCondition, v1alpha2.UnsafeCRDsReason, report.Stalled),
	onValue(func(e *crds.IncompatibleError, result *report.Result) {
		set(result, preflightFailed, v1alpha2.UnsupportedProviderDowngradeReason, report.Stalled)

		switch {
		case e.NewerVersion != "":
		case e.Missing:
			set(result, "", v1alpha2.WaitingForCRDsReason, report.Waiting)
		default:
			set(result, "", v1alpha2.IncompatibleCRDReason, report.Stalled)
		}
	}),
	on[*uncheckedError](preflightFailed, v1alpha2.UnsupportedProviderDowngradeReason, report.Stalled),
	on[*fetch.UnknownProviderError](installFailed, v1alpha2.UnknownProviderReason, report.Stalled),
	on[*bundle.InvalidError](installFailed, v1alpha2.InvalidComponentsReason, report.Stalled),
	on[*crds.RefusedError](installFailed, v1alpha2.CRDsNotReadyReason, report.Stalled),
	on[*crds.OwnershipError](installFailed, v1alpha2.CRDConflictReason, report.Stalled),
	on[*values.CustomizationError](installFailed, v1alpha2.ComponentsCustomizationErrorReason, report.Stalled),
	on[*values.ImagesError](installFailed, v1alpha2.ComponentsImageOverrideErrorReason, report.Stalled),
	onValue(func(e *manifest.Error, result *report.Result) {
		set(result, installFailed, v1alpha2.ComponentsPatchErrorReason, report.Stalled)
		result.Message = e.Error() // Helm wraps it in an error that quotes the manifest
	}),

	// The same chart and values would be refused again.
	on[*release.RenderError](installFailed, v1alpha2.InstallFailedReason, report.Stalled),
	on[*object.AnnotationError](installFailed, v1alpha2.InstallFailedReason, report.Stalled),
	on[*cluster.UnknownKindError](installFailed, v1alpha2.InstallFailedReason, report.Stalled),
	on[*ownedError](preflightFailed, v1alpha2.MoreThanOneProviderInstanceExistsReason, report.Stalled),
	on[*foreignError](installFailed, v1alpha2.InstallFailedReason, report.Stalled),
	on[*storage.ExcessError](installFailed, v1alpha2.InstallFailedReason, report.Stalled),
	on[*release.UnconfirmedError](installFailed, v1alpha2.InstallFailedReason, report.Stalled),
	on[*cluster.DryRunError](installFailed, v1alpha2.InstallFailedReason, report.Stalled),
	on[*cluster.ConflictError](installFailed, v1alpha2.InstallFailedReason, report.Stalled),
	on[*release.NoRevisionError](installFailed, v1alpha2.InstallFailedReason, report.Stalled),

	// The server of the source refuses, or the credentials for it are wrong.
	onValue(func(e *transport.Error, result *report.Result) {
		set(result, installFailed, v1alpha2.ComponentsFetchErrorReason, report.Stalled)

		switch e.Kind {
		case transport.Refused:
			set(result, preflightFailed, v1alpha2.FetchConfigValidationErrorReason, report.Stalled)
		case transport.InvalidToken:
			set(result, preflightFailed, v1alpha2.InvalidGithubTokenReason, report.Stalled)
		case transport.NotFound:
			result.Reason = v1alpha2.VersionNotFoundReason
		case transport.Invalid:
			result.Reason = v1alpha2.InvalidComponentsReason
		case transport.Unverified:
			result.Reason = v1alpha2.UntrustedSourceReason
		case transport.Unavailable, transport.Untrusted:
			result.Outcome = report.Retrying
		}

		if !e.Until.IsZero() {
			result.Outcome, result.At = report.Waiting, e.Until
		}
	}),

	// Passing troubles.
	onValue(func(e *release.LockedError, result *report.Result) {
		set(result, installFailed, v1alpha2.ProgressingReason, report.Waiting)
		result.At = e.Until
	}),
	on[*plan.StoreError](installFailed, v1alpha2.ChartStoreErrorReason, report.Retrying),
}

// notPermitted completes the result of a request that the account, or without one the operator, may not make.
func notPermitted(err error, result *report.Result) bool {
	if !object.IsNotPermitted(err) {
		return false
	}

	set(result, preflightFailed, v1alpha2.MissingPermissionsReason, report.Stalled)

	if fix := object.Fix(err); !strings.HasSuffix(result.Message, fix) {
		result.Message += fix
	}

	return true
}

// failed returns the result of an error: that of its row in the table, or Retrying with the reason of
// what the step was about. Without an error it continues.
func failed(err error, reason string) report.Result {
	if err == nil {
		return report.Result{}
	}

	result := report.Result{Outcome: report.Retrying, Condition: installFailed, Reason: reason, Message: err.Error()}

	for _, row := range errorTable {
		if row.fill(err, &result) {
			break
		}
	}

	result.Limited = result.Outcome == report.Waiting || result.Outcome == report.Retrying

	return result
}
