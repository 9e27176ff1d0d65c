package reconcile

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/permissions"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
)

// checkGates makes sure that the plan may be applied: its contract fits the other providers', its
// variables have values, and the APIs that it needs are served. Core's health is awaited only after
// the CRDs, because these take a while to be served.
func (r *run) checkGates(ctx context.Context) Result {
	defer r.Metrics.Step(r.Type, metrics.StepPreflight)()

	if !r.applies() {
		return Result{}
	}

	err := r.Preflight.Installation(ctx, preflight.Input{
		Provider:         r.provider,
		Mapper:           r.target.Cluster.RESTMapper(),
		Contract:         r.plan.Chart.Contract(),
		RequiredKinds:    r.plan.Chart.RequiredKinds(),
		MissingVariables: r.plan.MissingVariables,
	})

	core := new(preflight.Problem)
	if !errors.As(err, &core) || core.Reason != v1alpha2.WaitingForCoreProviderReadyReason {
		return failed(err, applying)
	}

	if !r.needsCore() {
		return Result{}
	}

	r.coreProblem = core
	if core.CRDs {
		return Result{}
	}

	return failed(err, applying)
}

// needsCore reports whether core must be healthy before the plan is applied: for a first install, and
// for another contract.
func (r *run) needsCore() bool {
	if len(r.installed.history.Revisions) == 0 {
		return true
	}

	installed := r.provider.GetStatus().Contract

	return installed != nil && *installed != r.plan.Chart.Contract()
}

// waitForCore ends the change while core is not healthy and the plan needs it to be. What it lets pass
// has passed all gates.
func (r *run) waitForCore(context.Context) Result {
	if r.coreProblem != nil {
		return failed(r.coreProblem, applying)
	}

	if !r.applies() && r.state.Condition != release.InSync {
		return Result{}
	}

	r.passed = true
	status := r.provider.GetStatus()
	status.Contract = nil

	if contract := r.plan.Chart.Contract(); contract != "" {
		status.Contract = &contract
	}

	return Result{}
}

// checkPermissions makes sure that the account that the provider is installed with has all permissions
// for the release, before anything is done. What was permitted for the same release is not asked again.
func (r *run) checkPermissions(ctx context.Context) Result {
	account := r.target.Account
	if !r.applies() || account == "" {
		return Result{}
	}

	uid := r.provider.GetUID()
	if r.permitted.has(uid, r.goal.digest) && !r.policy.Requested {
		return Result{}
	}

	record, err := r.target.Releases.Render(ctx, r.plan.Release)
	if err != nil {
		return failed(err, applying)
	}

	needed, err := r.neededPermissions(record)
	if err != nil {
		return failed(err, applying)
	}

	err = permissions.Check(ctx, r.target.Cluster, account, needed, record.Objects)
	if missing := (*permissions.MissingError)(nil); errors.As(err, &missing) {
		missing.Absent = r.accountAbsent(ctx)
		return failed(missing, applying)
	}

	if err != nil {
		return failed(err, applying)
	}

	r.permitted.add(uid, r.goal.digest)

	return Result{}
}

// accountAbsent reports whether the provider's ServiceAccount is known not to exist. Permissions can be
// granted to one before it does.
func (r *run) accountAbsent(ctx context.Context) bool {
	user := r.target.Account
	key := client.ObjectKey{Namespace: r.provider.GetNamespace(), Name: user[strings.LastIndex(user, ":")+1:]}

	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))

	return apierrors.IsNotFound(r.target.Reader.Get(ctx, key, account))
}

// neededPermissions lists the permissions that installing the plan takes.
func (r *run) neededPermissions(record *release.Record) ([]permissions.Access, error) {
	needed, err := permissions.Needed(r.target.Cluster.RESTMapper(), record.Objects)
	if err != nil {
		return nil, err
	}

	needed = append(needed, permissions.Storage(r.provider.GetNamespace()))

	chart, spec := r.plan.Chart.Chart, r.provider.GetSpec().CRDs
	if len(chart.CRDs) > 0 && (spec == nil || spec.Policy != v1alpha2.CRDsNone) {
		needed = append(needed, permissions.CRDs)
	}

	labels, err := chartgen.NamespaceLabels(chart)
	if len(labels) > 0 {
		needed = append(needed, permissions.Namespaces)
	}

	return needed, err
}
