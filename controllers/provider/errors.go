package provider

import (
	"errors"
	"strings"

	"github.com/fluxcd/pkg/runtime/acl"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/problem"
)

const (
	preflightFailed = v1alpha2.PreflightCheckCondition
	installFailed   = v1alpha2.ProviderInstalledCondition
)

// resultOf returns the result of an error of a step: its own, or that of its problem, or else the same is tried again.
// Without an error the reconcile continues.
func resultOf(err error) Result { return resultOr(err, v1alpha2.InstallFailedReason) }

// resultOr is like resultOf, with the reason of an error that is no known problem.
func resultOr(err error, reason string) Result {
	if err == nil {
		return Result{}
	}

	if ended := (*endedError)(nil); errors.As(err, &ended) {
		return ended.Result
	}

	result := because(object.Text(err)).of(Result{Outcome: Retrying, Condition: installFailed, Reason: reason})
	result.explain(err)
	result.Limited = result.Outcome == Waiting || result.Outcome == Retrying

	return result
}

// outcomes are those of problems.
var outcomes = map[problem.Outcome]Outcome{
	problem.Stalled: Stalled, problem.Waiting: Waiting, problem.Retrying: Retrying,
}

// explain sets what is known of an error, which the operator's packages know as a problem.
func (r *Result) explain(err error) {
	found := problem.Of(err)

	switch denied := acl.AccessDeniedError(""); {
	case object.IsNotPermitted(err) && (found == nil || !found.Alone):
		r.stall(preflightFailed, v1alpha2.MissingPermissionsReason)

		if text, fix := object.Text(err), object.Fix(err); !strings.HasSuffix(text, fix) {
			r.message = because(text + fix)
		}
	case errors.As(err, &denied):
		r.stall(preflightFailed, v1alpha2.AccessDeniedReason)
		r.message = because(denied.Error())
	case errors.As(err, new(*ranges.Error)):
		r.stall(preflightFailed, v1alpha2.IncorrectVersionFormatReason)
	case errors.As(err, new(*bundle.InvalidError)):
		r.stall(installFailed, v1alpha2.InvalidComponentsReason)
	case found != nil:
		r.Condition, r.Reason, r.Outcome, r.At = found.Condition, found.Reason, outcomes[found.Outcome], found.Until

		if found.Alone {
			r.message = because(found.Message)
		}
	case errors.As(err, new(*fetch.UnknownProviderError)):
		r.stall(installFailed, v1alpha2.UnknownProviderReason)
	case errors.As(err, new(*apply.UnknownKindError)), errors.As(err, new(*apply.DryRunError)),
		errors.As(err, new(*apply.ConflictError)):
		r.stall(installFailed, v1alpha2.InstallFailedReason) // the same would be refused again
	default:
		r.explainAnswer(err)
	}
}

// stall makes the result that of a problem which a user must solve.
func (r *Result) stall(condition, reason string) {
	r.Outcome, r.Condition, r.Reason = Stalled, condition, reason
}

// explainAnswer sets what is known of an error of what a server has answered.
func (r *Result) explainAnswer(err error) {
	if unlisted := (*apply.UnlistedError)(nil); errors.As(err, &unlisted) {
		if unlisted.Lasting() {
			r.stall(installFailed, v1alpha2.InstallFailedReason)
			return
		}

		r.Outcome, r.Condition, r.Reason, r.At = Waiting, "", v1alpha2.ProgressingReason, unlisted.Until

		return
	}

	answer := (*transport.Error)(nil)
	if !errors.As(err, &answer) {
		return
	}

	r.stall(installFailed, v1alpha2.ComponentsFetchErrorReason)

	switch answer.Kind {
	case transport.Refused:
		r.stall(preflightFailed, v1alpha2.FetchConfigValidationErrorReason)
	case transport.InvalidToken:
		r.stall(preflightFailed, v1alpha2.InvalidGithubTokenReason)
	case transport.NotFound:
		r.Reason = v1alpha2.VersionNotFoundReason
	case transport.Invalid:
		r.Reason = v1alpha2.InvalidComponentsReason
	case transport.Unverified:
		r.Reason = v1alpha2.UntrustedSourceReason
	case transport.Unavailable, transport.Untrusted:
		r.Outcome = Retrying
	}

	if !answer.Until.IsZero() {
		r.Outcome, r.At = Waiting, answer.Until
	}
}
