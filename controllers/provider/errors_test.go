package provider

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/pkg/runtime/acl"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/takeover"
)

// errorCase is what a user sees of an error.
type errorCase struct {
	err       error
	condition string
	reason    string
	outcome   Outcome
	at        time.Time
}

var limit = time.Now().Add(time.Hour)

// denied is the API server's text about a missing permission.
var denied = fmt.Sprintf("User %q cannot list resource %q", "b", "secrets")

var errorCases = map[string]errorCase{
	"objects of the release that are not known yet": {
		err:       &apply.UnlistedError{Until: limit},
		condition: "", reason: v1alpha2.ProgressingReason, outcome: Waiting, at: limit,
	},
	"objects of the release that are not known until a webhook is repaired": {
		err:       &apply.UnlistedError{Until: limit, Kinds: []apply.Unlisted{{Lasting: true}}},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"a failed check": {
		err:       problem.Refuse(v1alpha2.MissingVariablesReason, "no"),
		condition: preflightFailed, reason: v1alpha2.MissingVariablesReason, outcome: Stalled,
	},
	"a check that waits for another resource": {
		err:       problem.Await(v1alpha2.WaitingForCoreProviderReadyReason, "no"),
		condition: preflightFailed, reason: v1alpha2.WaitingForCoreProviderReadyReason, outcome: Waiting,
	},
	"a problem that ends at a time": {
		err:       takeover.Running(types.NamespacedName{}, limit),
		condition: preflightFailed, reason: v1alpha2.OtherOperatorRunningReason, outcome: Waiting, at: limit,
	},
	"what cannot be installed": {
		err:       problem.Fail(v1alpha2.CRDConflictReason, "no"),
		condition: installFailed, reason: v1alpha2.CRDConflictReason, outcome: Stalled,
	},
	"a problem that may pass": {
		err:       plan.StoreFailed(errors.New("refused")),
		condition: installFailed, reason: v1alpha2.ChartStoreErrorReason, outcome: Retrying,
	},
	"a problem that lacks a permission": {
		err: plan.StoreFailed(apierrors.NewForbidden(
			schema.GroupResource{Resource: "configmaps"}, "a", errors.New(denied))),
		condition: preflightFailed, reason: v1alpha2.MissingPermissionsReason, outcome: Stalled,
	},
	"a finalizer that the other operator's webhook refuses": {
		err:       takeover.Refused(apierrors.NewForbidden(schema.GroupResource{}, "docker", errors.New(denied))),
		condition: preflightFailed, reason: v1alpha2.ChangeRefusedReason, outcome: Stalled,
	},
	"a problem with another one as its cause": {
		err: &problem.Error{
			Reason: v1alpha2.InstallFailedReason, Message: "no",
			Cause: fmt.Errorf("context: %w", problem.Fail(v1alpha2.ComponentsPatchErrorReason, "no")),
		},
		condition: installFailed, reason: v1alpha2.ComponentsPatchErrorReason, outcome: Stalled,
	},
	"a source that is asked later": {
		err: &transport.Error{
			Kind: transport.Unavailable,
			Err:  &problem.Error{Reason: v1alpha2.ProgressingReason, Outcome: problem.Retrying, Message: "busy"},
		},
		condition: "", reason: v1alpha2.ProgressingReason, outcome: Retrying,
	},
	"an invalid version": {
		err:       &ranges.Error{Version: "1.x2"},
		condition: preflightFailed, reason: v1alpha2.IncorrectVersionFormatReason, outcome: Stalled,
	},
	"a source at an address that is refused": {
		err:       &transport.Error{Kind: transport.Refused},
		condition: preflightFailed, reason: v1alpha2.FetchConfigValidationErrorReason, outcome: Stalled,
	},
	"a cluster that does not answer": {
		err:       unreachable,
		condition: "", reason: v1alpha2.ClusterUnreachableReason, outcome: Waiting,
	},
	"missing permissions": {
		err: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a",
			errors.New(denied)),
		condition: preflightFailed, reason: v1alpha2.MissingPermissionsReason, outcome: Stalled,
	},
	"an object in another namespace": {
		err:       acl.AccessDeniedError("refused"),
		condition: preflightFailed, reason: v1alpha2.AccessDeniedReason, outcome: Stalled,
	},
	"an unsafe change of CRDs": {
		err:       unsafe(&trial.Report{}, "v1.2.0"),
		condition: v1alpha2.CRDsSafeCondition, reason: v1alpha2.UnsafeCRDsReason, outcome: Stalled,
	},
	"objects that cannot be read": {
		err:       unsafe(&trial.Report{Findings: []trial.Finding{{Unread: true}}}, "v1.2.0"),
		condition: v1alpha2.CRDsSafeCondition, reason: v1alpha2.UnreadableObjectsReason, outcome: Retrying,
	},
	"an object whose health cannot be read": {
		err: health.Unconverted(unhealthy("", "").Object,
			apierrors.NewInternalError(errors.New("conversion webhook for example.com/v1, Kind=A failed: EOF"))),
		condition: "", reason: v1alpha2.UnreadableObjectsReason, outcome: Retrying,
	},
	"objects that cannot be read, and others that break": {
		err:       unsafe(&trial.Report{Findings: []trial.Finding{{Unread: true}, {}}}, "v1.2.0"),
		condition: v1alpha2.CRDsSafeCondition, reason: v1alpha2.UnsafeCRDsReason, outcome: Stalled,
	},
	"an unmanaged CRD that is missing": {
		err:    crds.Missing("x", "v1.0.0"),
		reason: v1alpha2.WaitingForCRDsReason, outcome: Waiting,
	},
	"an unmanaged CRD that is incompatible": {
		err:    crds.Incompatible("x", "v1.0.0", nil),
		reason: v1alpha2.IncompatibleCRDReason, outcome: Stalled,
	},
	"a rollback to a revision that cannot be checked": {
		err:       unchecked("v1.0.0", "v1.1.0"),
		condition: preflightFailed, reason: v1alpha2.UnsupportedProviderDowngradeReason, outcome: Stalled,
	},
	"an unknown provider": {
		err:       &fetch.UnknownProviderError{},
		condition: installFailed, reason: v1alpha2.UnknownProviderReason, outcome: Stalled,
	},
	"a version that does not exist": {
		err:       &transport.Error{Kind: transport.NotFound},
		condition: installFailed, reason: v1alpha2.VersionNotFoundReason, outcome: Stalled,
	},
	"an untrusted source": {
		err:       &transport.Error{Kind: transport.Unverified},
		condition: installFailed, reason: v1alpha2.UntrustedSourceReason, outcome: Stalled,
	},
	"files that are not a provider's": {
		err:       &transport.Error{Kind: transport.Invalid},
		condition: installFailed, reason: v1alpha2.InvalidComponentsReason, outcome: Stalled,
	},
	"a source in trouble": {
		err:       &transport.Error{Until: limit},
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Waiting, at: limit,
	},
	"invalid components": {
		err:       &bundle.InvalidError{},
		condition: installFailed, reason: v1alpha2.InvalidComponentsReason, outcome: Stalled,
	},
	"an unknown kind": {
		err:       &apply.UnknownKindError{Objects: []object.Key{{Name: "x"}}},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"an object that the API server would refuse": {
		err:       &apply.DryRunError{Objects: []*apply.ObjectError{{}}},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"an object of another release": {
		err:       &apply.ConflictError{Conflicts: []apply.Conflict{{Reason: "belongs to release a/b"}}},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"a refused GitHub token": {
		err:       &transport.Error{Kind: transport.InvalidToken},
		condition: preflightFailed, reason: v1alpha2.InvalidGithubTokenReason, outcome: Stalled,
	},
	"a server that refuses": {
		err:       &transport.Error{Kind: transport.Denied},
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Stalled,
	},
	"a server in trouble": {
		err:       &transport.Error{Kind: transport.Unavailable},
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Retrying,
	},
}

func TestResultOfError(t *testing.T) {
	for name, test := range errorCases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			result := resultOf(fmt.Errorf("context: %w", test.err))
			g.Expect(result.Condition).To(Equal(test.condition))
			g.Expect(result.Reason).To(Equal(test.reason))
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.At).To(Equal(test.at))
			g.Expect(result.Limited).To(Equal(test.outcome != Stalled), "waiting for others does not last forever")
			g.Expect(result.text()).To(ContainSubstring(test.err.Error()))
		})
	}
}

// TestProblemThatSaysAll: Helm, for example, wraps problems in errors that quote a manifest.
func TestProblemThatSaysAll(t *testing.T) {
	g := NewWithT(t)
	found := problem.Fail(v1alpha2.ComponentsPatchErrorReason, "spec.patches[0]: no")
	found.Alone = true

	g.Expect(resultOf(fmt.Errorf("password: %w", found)).text()).To(Equal("spec.patches[0]: no"))
}

func TestOtherResults(t *testing.T) {
	g := NewWithT(t)
	g.Expect(resultOf(nil)).To(Equal(Result{}))
	g.Expect(resultOf(errors.New("timeout"))).To(Equal(Result{
		Outcome: Retrying, Condition: installFailed, Reason: v1alpha2.InstallFailedReason,
		message: because("timeout"), Limited: true,
	}))

	g.Expect(resultOr(errors.New("timeout"), v1alpha2.ComponentsFetchErrorReason).Reason).To(
		Equal(v1alpha2.ComponentsFetchErrorReason))

	own := wait(v1alpha2.CRDsNotReadyReason, "waiting", time.Time{})
	g.Expect(resultOf(fmt.Errorf("context: %w", endWith(own)))).To(Equal(own))
}
