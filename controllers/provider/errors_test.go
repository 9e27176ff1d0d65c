package provider

import (
	"errors"
	"fmt"
	"reflect"
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
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/trial"
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
		err:       &cluster.UnlistedError{Until: limit},
		condition: "", reason: v1alpha2.ProgressingReason, outcome: Waiting, at: limit,
	},
	"objects of the release that are not known until a webhook is repaired": {
		err:       &cluster.UnlistedError{Until: limit, Kinds: []cluster.Unlisted{{Lasting: true}}},
		condition: installFailed, reason: v1alpha2.InstallFailedReason, outcome: Stalled,
	},
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
		err:       &takeover.RunningError{Until: limit},
		condition: preflightFailed, reason: v1alpha2.OtherOperatorRunningReason, outcome: Waiting, at: limit,
	},
	"a finalizer that the other operator's webhook refuses": {
		err:       takeover.Refused(apierrors.NewForbidden(schema.GroupResource{}, "docker", errors.New("refused"))),
		condition: preflightFailed, reason: v1alpha2.ChangeRefusedReason, outcome: Stalled,
	},
	"a cluster that is asked later": {
		err:       &seats.BusyError{Asked: 5},
		condition: "", reason: v1alpha2.ProgressingReason, outcome: Retrying,
	},
	"a source that is asked later": {
		err:       &transport.Error{Kind: transport.Unavailable, Err: &seats.BusyError{Asked: 3, Namespace: "team"}},
		condition: "", reason: v1alpha2.ProgressingReason, outcome: Retrying,
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
		err:       &transport.Error{Kind: transport.Refused},
		condition: preflightFailed, reason: v1alpha2.FetchConfigValidationErrorReason, outcome: Stalled,
	},
	"a source at an address that is refused": {
		err:       &transport.Error{Kind: transport.Refused},
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
	"a cluster that does not answer": {
		err:       &clusters.UnreachableError{},
		condition: "", reason: v1alpha2.ClusterUnreachableReason, outcome: Waiting,
	},
	"missing permissions": {
		err: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a",
			errors.New(denied)),
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
		err:       &unsafeError{&trial.Report{}, "v1.2.0"},
		condition: v1alpha2.CRDsSafeCondition, reason: v1alpha2.UnsafeCRDsReason, outcome: Stalled,
	},
	"objects that cannot be read": {
		err:       &unsafeError{&trial.Report{Findings: []trial.Finding{{Unread: true}}}, "v1.2.0"},
		condition: v1alpha2.CRDsSafeCondition, reason: v1alpha2.UnreadableObjectsReason, outcome: Retrying,
	},
	"an object whose health cannot be read": {
		err: &health.UnconvertedError{
			Object: unhealthy("", "").Object,
			Err:    apierrors.NewInternalError(errors.New("conversion webhook for example.com/v1, Kind=A failed: EOF")),
		},
		condition: "", reason: v1alpha2.UnreadableObjectsReason, outcome: Retrying,
	},
	"objects that cannot be read, and others that break": {
		err:       &unsafeError{&trial.Report{Findings: []trial.Finding{{Unread: true}, {}}}, "v1.2.0"},
		condition: v1alpha2.CRDsSafeCondition, reason: v1alpha2.UnsafeCRDsReason, outcome: Stalled,
	},
	"a CRD of a newer version": {
		err:       &crds.IncompatibleError{NewerVersion: "v1.1.0"},
		condition: preflightFailed, reason: v1alpha2.UnsupportedProviderDowngradeReason, outcome: Stalled,
	},
	"an unmanaged CRD that is missing": {
		err:    &crds.IncompatibleError{Missing: true},
		reason: v1alpha2.WaitingForCRDsReason, outcome: Waiting,
	},
	"an unmanaged CRD that is incompatible": {
		err:    &crds.IncompatibleError{},
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
		err:       &manifest.Error{Field: "spec.patches[0]"},
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
		err:       &release.UnconfirmedError{Release: types.NamespacedName{Namespace: "a", Name: "b"}, Revision: 3},
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
	"a refused GitHub token": {
		err:       &transport.Error{Kind: transport.InvalidToken},
		condition: preflightFailed, reason: v1alpha2.InvalidGithubTokenReason, outcome: Stalled,
	},
	"a rate limit": {
		err:       &transport.Error{Until: limit},
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Waiting, at: limit,
	},
	"a server that refuses": {
		err:       &transport.Error{Kind: transport.Denied},
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Stalled,
	},
	"a server in trouble": {
		err:       &transport.Error{Kind: transport.Unavailable},
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Retrying,
	},
	"a release that another program works on": {
		err:       &release.LockedError{Until: limit},
		condition: installFailed, reason: v1alpha2.ProgressingReason, outcome: Waiting, at: limit,
	},
	"a chart store that fails": {
		err:       &plan.StoreError{Err: errors.New("refused")},
		condition: installFailed, reason: v1alpha2.ChartStoreErrorReason, outcome: Retrying,
	},
	"a source that cannot be read": {
		err:       &fetchError{errors.New("connection reset")},
		condition: installFailed, reason: v1alpha2.ComponentsFetchErrorReason, outcome: Retrying,
	},
}

func TestErrorTable(t *testing.T) {
	for name, test := range errorCases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			result := resultOf(fmt.Errorf("context: %w", test.err))
			g.Expect(result.Condition).To(Equal(test.condition))
			g.Expect(result.Reason).To(Equal(test.reason))
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.At).To(Equal(test.at))
			g.Expect(result.Limited).To(Equal(test.outcome != Stalled), "waiting for others does not last forever")
			g.Expect(result.Message).To(ContainSubstring(test.err.Error()))
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

func TestOtherResults(t *testing.T) {
	g := NewWithT(t)
	g.Expect(resultOf(nil)).To(Equal(Result{}))
	g.Expect(resultOf(errors.New("timeout"))).To(Equal(Result{
		Outcome: Retrying, Condition: installFailed, Reason: v1alpha2.InstallFailedReason, Message: "timeout", Limited: true,
	}))

	own := wait(v1alpha2.CRDsNotReadyReason, "waiting", time.Time{})
	g.Expect(resultOf(fmt.Errorf("context: %w", endWith(own)))).To(Equal(own))
}
