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
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/source/web"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/patches"
	"github.com/capstan-project/capstan/controllers/permissions"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/sources"
	"github.com/capstan-project/capstan/controllers/target"
	"github.com/capstan-project/capstan/controllers/values"
)

// Between these bounds a problem that a person must solve is looked at again, each time after as long as it has stood.
// What can be watched is looked at earlier.
const (
	shortestRetry = release.ShortestRetry
	longestRetry  = release.LongestRetry
)

// outcome is how one reconcile ended, in the words of the API.
type outcome struct {
	// condition that is False because of it; empty when all conditions stand as the steps left them.
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

// chores is a step's way to say that the provider is as it should be, and that work in the background goes on at a time.
type chores struct{ until time.Time }

func (c *chores) Error() string { return "work in the background goes on" }

// installError is an error of the steps that apply something.
type installError struct{ err error }

func (e *installError) Error() string { return e.err.Error() }
func (e *installError) Unwrap() error { return e.err }

// failedError says that an attempt failed and when the next follows; a zero time means that there is none until an input changes.
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
		blocked  *blockedError
	)
	o := outcome{condition: v1alpha2.ProviderInstalledCondition, reason: v1alpha2.InstallFailedReason, message: err.Error(), next: nextRetry}
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

// classifyInput finds the outcome of an error that lies in the resource or in what it points to.
func classifyInput(err error) (outcome, bool) {
	var (
		problem    *preflight.Problem
		config     *sources.ConfigError
		address    *source.AddressError
		unknown    *sources.UnknownProviderError
		noSecret   *values.SecretNotFoundError
		noSource   *source.NotFoundError
		untrusted  *source.UntrustedError
		invalid    *bundle.InvalidError
		refusedCRD *crds.RefusedError
		kubeConfig *target.KubeConfigError
		missing    *permissions.MissingError
		ownedCRD   *crds.OwnedError
		unsafeCRDs *unsafeError
		unfitCRD   *crds.UnsatisfiedError
		custom     *values.CustomizationError
		images     *values.ImagesError
		patch      *patches.Error
	)
	o := outcome{condition: v1alpha2.ProviderInstalledCondition, message: err.Error(), next: nextInput}
	switch {
	case errors.As(err, &problem):
		o.condition, o.reason = v1alpha2.PreflightCheckCondition, problem.Reason
		if problem.Waiting {
			o.next = nextEvent
		}
	case errors.As(err, &config), errors.As(err, &address):
		o.condition, o.reason = v1alpha2.PreflightCheckCondition, v1alpha2.FetchConfigValidationErrorReason
	case errors.As(err, &unknown):
		o.reason = v1alpha2.UnknownProviderReason
	case errors.As(err, &noSecret):
		o.condition, o.reason = v1alpha2.PreflightCheckCondition, v1alpha2.SecretNotFoundReason
	case errors.As(err, &noSource):
		o.reason = v1alpha2.VersionNotFoundReason
	case errors.As(err, &untrusted):
		o.reason = v1alpha2.UntrustedSourceReason
	case errors.As(err, &invalid):
		o.reason = v1alpha2.InvalidComponentsReason
	case errors.As(err, &refusedCRD):
		o.reason = v1alpha2.CRDsNotReadyReason
	case errors.As(err, &kubeConfig):
		o.condition, o.reason = v1alpha2.PreflightCheckCondition, v1alpha2.KubeConfigErrorReason
	case errors.As(err, &missing):
		o.condition, o.reason = v1alpha2.PreflightCheckCondition, v1alpha2.MissingPermissionsReason
	case errors.As(err, &ownedCRD):
		o.reason = v1alpha2.CRDConflictReason
	case errors.As(err, &unsafeCRDs):
		o.condition, o.reason = v1alpha2.CRDsSafeCondition, v1alpha2.UnsafeCRDsReason
	case errors.As(err, &unfitCRD) && unfitCRD.Newer != "":
		o.condition, o.reason = v1alpha2.PreflightCheckCondition, v1alpha2.UnsupportedProviderDowngradeReason
	case errors.As(err, &unfitCRD):
		o.condition, o.reason, o.next = "", v1alpha2.WaitingForCRDsReason, nextEvent
	case errors.As(err, &custom):
		o.reason = v1alpha2.ComponentsCustomizationErrorReason
	case errors.As(err, &images):
		o.reason = v1alpha2.ComponentsImageOverrideErrorReason
	case errors.As(err, &patch):
		o.reason, o.message = v1alpha2.ComponentsPatchErrorReason, patch.Error()
	case refusedRelease(err):
		o.reason = v1alpha2.InstallFailedReason
	default:
		return classifyServer(err)
	}
	return o, true
}

// classifyServer finds the outcome of an error that a source's server, or the credentials for it, are the cause of.
func classifyServer(err error) (outcome, bool) {
	var (
		noSecret    *sources.SecretNotFoundError
		credentials *web.CredentialsError
		token       *source.InvalidTokenError
		limit       *web.LimitError
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

// refusedRelease says whether the same chart and values would be refused again.
func refusedRelease(err error) bool {
	var (
		render   *release.RenderError
		kind     *release.UnknownKindError
		conflict *release.ConflictError
		revision *release.NoRevisionError
	)
	return errors.As(err, &render) || errors.As(err, &kind) || errors.As(err, &conflict) || errors.As(err, &revision)
}

// conclude writes the outcome of the steps into the summary conditions and says when to come back. Conditions keep the
// time of their last change, so a problem's age is known without any state of our own.
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
