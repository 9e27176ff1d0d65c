package reconcile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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
	"github.com/capstan-project/capstan/controllers/crds/safety"
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
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/controllers/values"
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

var errorCases = map[string]errorCase{
	"a failed check": {
		err:       &preflight.Error{Reason: v1alpha2.MissingVariablesReason},
		condition: preflightFailed, reason: v1alpha2.MissingVariablesReason, outcome: Stalled,
	},
	"a check that waits for another resource": {
		err:       &preflight.Error{Reason: v1alpha2.WaitingForCoreProviderReadyReason, Waiting: true},
		condition: preflightFailed, reason: v1alpha2.WaitingForCoreProviderReadyReason, outcome: Waiting,
	},
	"a check that waits for an API": {
		err:       &preflight.Error{Reason: v1alpha2.CertManagerMissingReason, Waiting: true, Until: limit},
		condition: preflightFailed, reason: v1alpha2.CertManagerMissingReason, outcome: Waiting, at: limit,
	},
	"a resource that cluster-api-operator manages": {
		err:       &predecessor.RunningError{Until: limit},
		condition: preflightFailed, reason: v1alpha2.OtherOperatorRunningReason, outcome: Waiting, at: limit,
	},
	"a finalizer that the other operator's webhook refuses": {
		err:       predecessor.Refused(apierrors.NewForbidden(schema.GroupResource{}, "docker", errors.New("refused"))),
		condition: preflightFailed, reason: v1alpha2.ChangeRefusedReason, outcome: Stalled,
	},
	"an invalid fetchConfig": {
		err:       &fetch.ConfigError{},
		condition: preflightFailed, reason: v1alpha2.FetchConfigValidationErrorReason, outcome: Stalled,
	},
	"an invalid version": {
		err:       &ranges.Error{Version: "1.x2"},
		condition: preflightFailed, reason: v1alpha2.IncorrectVersionFormatReason, outcome: Stalled,
	},
	"an invalid address": {
		err:       &source.AddressError{},
		condition: preflightFailed, reason: v1alpha2.FetchConfigValidationErrorReason, outcome: Stalled,
	},
	"a source at an address that is refused": {
		err:       &web.AddressError{},
		condition: preflightFailed, reason: v1alpha2.FetchConfigValidationErrorReason, outcome: Stalled,
	},
	"a missing Secret": {
		err:       &access.SecretNotFoundError{},
		condition: preflightFailed, reason: v1alpha2.SecretNotFoundReason, outcome: Stalled,
	},
	"an unusable kubeconfig": {
		err:       &clusters.KubeConfigError{},
		condition: preflightFailed, reason: v1alpha2.KubeConfigErrorReason, outcome: Stalled,
	},
	"a kind that cannot be watched": {
		err:       &health.WatchError{},
		condition: "", reason: v1alpha2.ProgressingReason, outcome: Waiting,
	},
	"a cluster that does not answer": {
		err:       &clusters.UnreachableError{},
		condition: "", reason: v1alpha2.ClusterUnreachableReason, outcome: Waiting,
	},
	"missing permissions": {
		err:       &permissions.MissingError{},
		condition: preflightFailed, reason: v1alpha2.MissingPermissionsReason, outcome: Stalled,
	},
	"an object that the account must not read": {
		err:       &access.ForbiddenError{},
		condition: preflightFailed, reason: v1alpha2.MissingPermissionsReason, outcome: Stalled,
	},
	"an object in another namespace": {
		err:       acl.AccessDeniedError("refused"),
		condition: preflightFailed, reason: v1alpha2.AccessDeniedReason, outcome: Stalled,
	},
	"an unsafe change of CRDs": {
		err:       &unsafeError{&safety.Report{}, "v1.2.0"},
		condition: v1alpha2.CRDsSafeCondition, reason: v1alpha2.UnsafeCRDsReason, outcome: Stalled,
	},
	"a CRD of a newer version": {
		err:       &crds.IncompatibleError{NewerVersion: "v1.1.0", Report: &safety.Report{}},
		condition: preflightFailed, reason: v1alpha2.UnsupportedProviderDowngradeReason, outcome: Stalled,
	},
	"an unmanaged CRD that is missing": {
		err:    &crds.IncompatibleError{Missing: true, Report: &safety.Report{}},
		reason: v1alpha2.WaitingForCRDsReason, outcome: Waiting,
	},
	"an unmanaged CRD that is incompatible": {
		err:    &crds.IncompatibleError{Report: &safety.Report{}},
		reason: v1alpha2.IncompatibleCRDReason, outcome: Stalled,
	},
	"a rollback to a revision that cannot be checked": {
		err:       &uncheckedError{version: "v1.0.0", crds: "v1.1.0"},
		condition: preflightFailed, reason: v1alpha2.UnsupportedProviderDowngradeReason, outcome: Stalled,
	},
	"an unknown provider": {
		err:       &fetch.UnknownProviderError{},
		condition: installFailed, reason: v1alpha2.UnknownProviderReason, outcome: Stalled,
	},
	"a version that does not exist": {
		err:       &source.NotFoundError{},
		condition: installFailed, reason: v1alpha2.VersionNotFoundReason, outcome: Stalled,
	},
	"an untrusted source": {
		err:       &source.UntrustedError{},
		condition: installFailed, reason: v1alpha2.UntrustedSourceReason, outcome: Stalled,
	},
	"invalid components": {
		err:       &bundle.InvalidError{},
		condition: installFailed, reason: v1alpha2.InvalidComponentsReason, outcome: Stalled,
	},
	"a refused CRD": {
		err:       &crds.RefusedError{Err: errors.New("invalid")},
		condition: installFailed, reason: v1alpha2.CRDsNotReadyReason, outcome: Stalled,
	},
	"a CRD of another provider": {
		err:       &crds.OwnershipError{},
		condition: installFailed, reason: v1alpha2.CRDConflictReason, outcome: Stalled,
	},
	"a customization that does not fit": {
		err:       &values.CustomizationError{},
		condition: installFailed, reason: v1alpha2.ComponentsCustomizationErrorReason, outcome: Stalled,
	},
	"an invalid image override": {
		err:       &values.ImagesError{},
		condition: installFailed, reason: v1alpha2.ComponentsImageOverrideErrorReason, outcome: Stalled,
	},
	"a patch that matches nothing": {
		err:       &patches.Error{Field: "spec.patches[0]"},
		condition: installFailed, reason: v1alpha2.ComponentsPatchErrorReason, outcome: Stalled,
	},
	"a chart that cannot be rendered": {
		err:       &release.RenderError{},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"an object with an invalid annotation": {
		err:       &object.AnnotationError{},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"an unknown kind": {
		err:       &cluster.UnknownKindError{Objects: []object.Key{{Name: "x"}}},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"an object that the API server would refuse": {
		err:       &cluster.DryRunError{Objects: []*cluster.ObjectError{{}}},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"an object of another release": {
		err:       &cluster.ConflictError{Conflicts: []cluster.Conflict{{Reason: "belongs to release a/b"}}},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"a release of another program": {
		err:       &foreignError{release: "a/b", chart: "chart web 1.0.0"},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"records that no program makes": {
		err:       &storage.ExcessError{Message: "too many"},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"a revision that is not known to be the resource's": {
		err:       &unconfirmedError{release: types.NamespacedName{Namespace: "a", Name: "b"}, revision: 3},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"a release of a resource in another cluster": {
		err:       &ownedError{release: "a/b"},
		condition: preflightFailed, reason: v1alpha2.MoreThanOneProviderInstanceExistsReason, outcome: Stalled,
	},
	"a revision that does not exist": {
		err:       &release.NoRevisionError{},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
	"invalid credentials": {
		err:       &web.CredentialsError{Err: errors.New("no Secret")},
		condition: preflightFailed, reason: v1alpha2.FetchConfigValidationErrorReason, outcome: Stalled,
	},
	"a refused GitHub token": {
		err:       &source.InvalidTokenError{},
		condition: preflightFailed, reason: v1alpha2.InvalidGithubTokenReason, outcome: Stalled,
	},
	"a rate limit": {
		err:       &web.RateLimitError{Until: limit},
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Waiting, at: limit,
	},
	"a server that refuses": {
		err:       &web.StatusError{Status: 403},
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Stalled,
	},
	"a server in trouble": {
		err:       &web.StatusError{Status: 502},
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Retrying,
	},
	"a web page instead of components": {
		err:       &web.ContentError{},
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Stalled,
	},
	"a release that another program works on": {
		err:       &release.LockedError{Until: limit},
		condition: installFailed, reason: v1alpha2.ProgressingReason, outcome: Waiting, at: limit,
	},
	"a chart store that fails": {
		err:       &plan.StoreError{Err: errors.New("refused")},
		condition: installFailed, reason: v1alpha2.ChartStoreErrorReason, outcome: Retrying,
	},
	"any other error": {
		err:       errors.New("connection reset"),
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Retrying,
	},
}

func TestNotesFitIntoEvents(t *testing.T) {
	g := NewWithT(t)
	g.Expect(note("short")).To(Equal("short"))
	g.Expect(note(strings.Repeat("€", 1000))).To(SatisfyAll(HaveSuffix("€ …"), HaveLen(1024)))
}

func TestErrorTable(t *testing.T) {
	for name, test := range errorCases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			result := failed(fmt.Errorf("context: %w", test.err), fetching)
			g.Expect(result.Condition).To(Equal(test.condition))
			g.Expect(result.Reason).To(Equal(test.reason))
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.At).To(Equal(test.at))
			g.Expect(result.Limited).To(Equal(test.outcome != Stalled), "waiting for others does not last forever")
			g.Expect(result.Message).To(ContainSubstring(test.err.Error()))
			g.Expect(result.Err != nil).To(Equal(test.outcome == Retrying), "only a retry returns the error")
		})
	}
}

func TestErrorTableIsTestedRowByRow(t *testing.T) {
	g := NewWithT(t)
	seen := map[reflect.Type]bool{}

	for _, row := range errorTable {
		g.Expect(seen[row.err]).To(BeFalse(), "%s has two rows", row.err)
		seen[row.err] = true

		tested := false
		for _, test := range errorCases {
			tested = tested || reflect.TypeOf(test.err) == row.err
		}

		g.Expect(tested).To(BeTrue(), "no case tests the row of %s", row.err)
	}
}

func TestFailedWithoutErrorContinues(t *testing.T) {
	NewWithT(t).Expect(failed(nil, applying)).To(Equal(Result{}))
}

func TestFailedUsesTheReasonOfTheStep(t *testing.T) {
	NewWithT(t).Expect(failed(errors.New("timeout"), applying).Reason).To(Equal(v1alpha2.InstallFailedReason))
}

func TestWriteResult(t *testing.T) {
	limit := time.Now().Add(time.Hour)
	failure := errors.New("connection reset")

	for name, test := range map[string]struct {
		result       Result
		ready        metav1.ConditionStatus
		reconciling  bool
		stalled      bool
		requeueAfter time.Duration
		err          error
	}{
		"ready": {result: Result{Outcome: Ready}, ready: metav1.ConditionTrue},
		"ready, with work to follow": {
			result: Result{Outcome: Ready, At: limit},
			ready:  metav1.ConditionTrue, requeueAfter: time.Hour,
		},
		"waiting for an event": {
			result: Result{Outcome: Waiting},
			ready:  metav1.ConditionFalse, reconciling: true,
		},
		"waiting for a time": {
			result: Result{Outcome: Waiting, At: limit},
			ready:  metav1.ConditionFalse, reconciling: true, requeueAfter: time.Hour,
		},
		"stalled": {
			result: Result{Outcome: Stalled},
			ready:  metav1.ConditionFalse, stalled: true, requeueAfter: minRetry,
		},
		"retrying": {
			result: Result{Outcome: Retrying, Err: failure},
			ready:  metav1.ConditionFalse, reconciling: true, err: failure,
		},
		"idle": {result: Result{Outcome: Idle}, ready: metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := &v1alpha2.InfrastructureProvider{}
			test.result.Reason = "Some"

			again, err := writeResult(p, test.result)
			if test.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(test.err))
			}

			g.Expect(again.RequeueAfter).To(BeNumerically("~", test.requeueAfter, time.Second))
			g.Expect(conditions.Get(p, v1alpha2.ReadyCondition)).To(And(
				HaveField("Status", test.ready), HaveField("Reason", "Some")))
			g.Expect(conditions.Has(p, v1alpha2.ReconcilingCondition)).To(Equal(test.reconciling))
			g.Expect(conditions.Has(p, v1alpha2.StalledCondition)).To(Equal(test.stalled))
		})
	}
}

func TestRetryAfter(t *testing.T) {
	g := NewWithT(t)
	limit := time.Now().Add(time.Hour)
	existed := func(d time.Duration) *metav1.Condition {
		return &metav1.Condition{LastTransitionTime: metav1.NewTime(time.Now().Add(-d))}
	}

	g.Expect(retryAfter(Result{}, existed(0))).To(Equal(minRetry))
	g.Expect(retryAfter(Result{}, existed(time.Minute))).To(BeNumerically("~", time.Minute, time.Second))
	g.Expect(retryAfter(Result{}, existed(24*time.Hour))).To(Equal(maxRetry))
	g.Expect(retryAfter(Result{At: limit}, existed(0))).To(BeNumerically("~", time.Hour, time.Second))
}
