package controllers

import (
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/web"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/patches"
	"github.com/capstan-project/capstan/controllers/permissions"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/values"
)

// Between these bounds a problem that a person must solve is looked at again, each time after as
// long as it has stood. What can be watched is looked at earlier.
const (
	shortestRetry = release.ShortestRetry
	longestRetry  = release.LongestRetry
)

// outcome is how one reconcile ended, in the words of the API.
type outcome struct {
	// condition that is False because of it; empty when all conditions stand as the steps left
	// them.
	condition string
	reason    string
	message   string
	// next says what brings the resource back.
	next next
	// at is the time to come back at, if that is known.
	at time.Time
}

// next is what brings a resource back after an unfinished reconcile.
type next int

const (
	// nextEvent: something that is watched will change.
	nextEvent next = iota
	// nextInput: a person must change the resource or one of its inputs.
	nextInput
	// nextRetry: it may work when tried again.
	nextRetry
)

// progress is a step's way to say that all is well so far and an event will tell when to go on.
type progress struct {
	reason  string
	message string
	// until is when to look again even without an event; zero for never.
	until time.Time
}

func (p *progress) Error() string { return p.message }

// chores is a step's way to say that the provider is as it should be, and that work in the
// background goes on at a time.
type chores struct{ until time.Time }

func (c *chores) Error() string { return "work in the background goes on" }

// installError is an error of the steps that apply something.
type installError struct{ err error }

func (e *installError) Error() string { return e.err.Error() }
func (e *installError) Unwrap() error { return e.err }

// storeError is an error of keeping charts in the cluster.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// failedError says that an attempt failed and when the next follows; a zero time means that there
// is none until an input changes.
type failedError struct {
	// condition that is False because of it; empty when something else is installed and runs.
	condition string
	reason    string
	message   string
	until     time.Time
}

func (e *failedError) Error() string { return e.message }

// externalChangeError says that somebody else's change is respected.
type externalChangeError struct{ message string }

func (e *externalChangeError) Error() string { return e.message }

// classify finds the outcome that an error of a step stands for.
func classify(err error) outcome {
	if o, ok := classifyInput(err); ok {
		return o
	}

	var (
		going    *progress
		pending  *release.PendingError
		failed   *failedError
		external *externalChangeError
		applying *installError
		storing  *storeError
		blocked  *blockedError
	)

	o := outcome{
		condition: v1alpha2.ProviderInstalledCondition,
		reason:    v1alpha2.InstallFailedReason,
		message:   err.Error(),
		next:      nextRetry,
	}
	switch {
	case errors.As(err, &going):
		o = outcome{reason: going.reason, message: o.message, next: nextEvent, at: going.until}
	case errors.As(err, &failed):
		o = failed.outcome()
	case errors.As(err, &external):
		o.reason, o.next = v1alpha2.ExternalChangeReason, nextInput
	case errors.As(err, &pending):
		o.reason, o.next, o.at = v1alpha2.ProgressingReason, nextEvent, pending.Until
	case errors.As(err, &blocked):
		o = blocked.outcome()
	case errors.As(err, &storing):
		o.reason = v1alpha2.ChartStoreErrorReason
	case errors.As(err, &applying):
	default:
		o.reason = v1alpha2.ComponentsFetchErrorReason
	}

	return o
}

// outcome says that it goes on by itself, or only when an input changes.
func (e *failedError) outcome() outcome {
	if e.until.IsZero() {
		return outcome{condition: e.condition, reason: e.reason, message: e.message, next: nextInput}
	}

	return outcome{condition: e.condition, reason: e.reason, message: e.message, next: nextEvent, at: e.until}
}

// inputRule writes into the outcome what an error stands for, if it is of the rule's type.
type inputRule func(err error, o *outcome) bool

// when is the rule for a type of error.
func when[E error](tell func(e E, o *outcome)) inputRule {
	return func(err error, o *outcome) bool {
		var e E
		if !errors.As(err, &e) {
			return false
		}

		tell(e, o)

		return true
	}
}

// because is the rule for a type of error that has one reason.
func because[E error](condition, reason string) inputRule {
	return when(func(_ E, o *outcome) { o.condition, o.reason = condition, reason })
}

const (
	preflightFailed = v1alpha2.PreflightCheckCondition
	installFailed   = v1alpha2.ProviderInstalledCondition
)

// inputRules are tried in their order.
var inputRules = []inputRule{
	when(func(e *preflight.Problem, o *outcome) {
		o.condition, o.reason = preflightFailed, e.Reason
		if e.Waiting {
			o.next = nextEvent
		}
	}),
	because[*fetch.ConfigError](preflightFailed, v1alpha2.FetchConfigValidationErrorReason),
	because[*source.VersionError](preflightFailed, v1alpha2.IncorrectVersionFormatReason),
	because[*source.AddressError](preflightFailed, v1alpha2.FetchConfigValidationErrorReason),
	because[*values.SecretNotFoundError](preflightFailed, v1alpha2.SecretNotFoundReason),
	because[*clusters.KubeConfigError](preflightFailed, v1alpha2.KubeConfigErrorReason),
	because[*permissions.MissingError](preflightFailed, v1alpha2.MissingPermissionsReason),
	because[*unsafeError](v1alpha2.CRDsSafeCondition, v1alpha2.UnsafeCRDsReason),
	when(func(e *crds.UnsatisfiedError, o *outcome) {
		if o.condition, o.reason = preflightFailed, v1alpha2.UnsupportedProviderDowngradeReason; e.Newer == "" {
			o.condition, o.reason, o.next = "", v1alpha2.WaitingForCRDsReason, nextEvent
		}
	}),
	because[*fetch.UnknownProviderError](installFailed, v1alpha2.UnknownProviderReason),
	because[*source.NotFoundError](installFailed, v1alpha2.VersionNotFoundReason),
	because[*source.UntrustedError](installFailed, v1alpha2.UntrustedSourceReason),
	because[*bundle.InvalidError](installFailed, v1alpha2.InvalidComponentsReason),
	because[*crds.RefusedError](installFailed, v1alpha2.CRDsNotReadyReason),
	because[*crds.OwnedError](installFailed, v1alpha2.CRDConflictReason),
	because[*values.CustomizationError](installFailed, v1alpha2.ComponentsCustomizationErrorReason),
	because[*values.ImagesError](installFailed, v1alpha2.ComponentsImageOverrideErrorReason),
	when(func(e *patches.Error, o *outcome) {
		o.condition, o.reason, o.message = installFailed, v1alpha2.ComponentsPatchErrorReason, e.Error()
	}),
	// The same chart and values would be refused again.
	because[*release.RenderError](installFailed, v1alpha2.InstallFailedReason),
	because[*release.UnknownKindError](installFailed, v1alpha2.InstallFailedReason),
	because[*release.ConflictError](installFailed, v1alpha2.InstallFailedReason),
	because[*release.NoRevisionError](installFailed, v1alpha2.InstallFailedReason),
}

// classifyInput finds the outcome of an error that lies in the resource or in what it points to.
func classifyInput(err error) (outcome, bool) {
	o := outcome{message: err.Error(), next: nextInput}
	for _, rule := range inputRules {
		if rule(err, &o) {
			return o, true
		}
	}

	return classifyServer(err)
}

// classifyServer finds the outcome of an error that a source's server, or the credentials for it,
// are the cause of.
func classifyServer(err error) (outcome, bool) {
	var (
		noSecret    *fetch.SecretNotFoundError
		credentials *web.CredentialsError
		token       *source.InvalidTokenError
		limit       *web.RateLimitError
		status      *web.StatusError
		content     *web.ContentError
	)

	o := outcome{condition: v1alpha2.PreflightCheckCondition, message: err.Error(), next: nextInput}
	switch {
	case errors.As(err, &noSecret):
		o.reason = v1alpha2.SecretNotFoundReason
	case errors.As(err, &credentials):
		o.reason = v1alpha2.FetchConfigValidationErrorReason
	case errors.As(err, &token):
		o.reason = v1alpha2.InvalidGithubTokenReason
	case errors.As(err, &limit):
		o.condition, o.reason, o.next, o.at = v1alpha2.ProviderInstalledCondition, v1alpha2.ComponentsFetchErrorReason, nextEvent, limit.Until
	case errors.As(err, &status) && status.Status < http.StatusInternalServerError, errors.As(err, &content):
		o.condition, o.reason = v1alpha2.ProviderInstalledCondition, v1alpha2.ComponentsFetchErrorReason
	default:
		return outcome{}, false
	}

	return o, true
}

// conclude writes the outcome of the steps into the summary conditions and says when to come back.
// Conditions keep the time of their last change, so a problem's age is known without any state of
// our own.
func conclude(provider v1alpha2.Provider, err error) (ctrl.Result, error) {
	later := new(chores)
	if err == nil || errors.As(err, &later) {
		conditions.Delete(provider, v1alpha2.ReconcilingCondition)
		conditions.Delete(provider, v1alpha2.StalledCondition)

		return ctrl.Result{RequeueAfter: after(later.until)}, nil
	}

	o := classify(err)
	if o.condition != "" {
		conditions.MarkFalse(provider, o.condition, o.reason, "%s", o.message)
	}

	conditions.MarkFalse(provider, v1alpha2.ReadyCondition, o.reason, "%s", o.message)

	switch o.next {
	case nextInput:
		conditions.MarkStalled(provider, o.reason, "%s", o.message)
		return ctrl.Result{RequeueAfter: retryAfter(o, conditions.Get(provider, v1alpha2.ReadyCondition))}, nil
	case nextRetry:
		conditions.MarkReconciling(provider, o.reason, "%s", o.message)
		return ctrl.Result{}, err
	default:
		conditions.MarkReconciling(provider, o.reason, "%s", o.message)
		return ctrl.Result{RequeueAfter: after(o.at)}, nil
	}
}

// after is how long it is until a time, at least a moment; nothing for no time at all.
func after(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}

	return max(time.Until(at), time.Millisecond)
}

// retryAfter is until the known time, else as long as the condition has stood, within bounds.
func retryAfter(o outcome, condition *metav1.Condition) time.Duration {
	if !o.at.IsZero() {
		return max(time.Until(o.at), time.Second)
	}

	return min(max(time.Since(condition.LastTransitionTime.Time), shortestRetry), longestRetry)
}
