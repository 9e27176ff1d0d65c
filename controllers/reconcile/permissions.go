package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/permissions"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release"
)

// checkPermissions makes sure that the account that the provider is installed with has all permissions
// for the release, before anything is done. What was permitted for the same release is not asked again.
func (r *run) checkPermissions(ctx context.Context) report.Result {
	if r.memory.permitted == r.change.goal.digest && !r.policy.Requested {
		return report.Result{}
	}

	record, err := r.target.Releases.Render(r.change.plan.Release)
	if err != nil {
		return failed(err, applying)
	}

	needed, err := r.installation(record).Needed()
	if err != nil {
		return failed(err, applying)
	}

	checker := permissions.Checker{
		Client:   r.target.Client,
		Account:  r.target.Account,
		Provider: v1alpha2.Label(r.provider),
	}

	err = checker.Check(ctx, needed, record.Objects)
	if missing := (*permissions.MissingError)(nil); errors.As(err, &missing) {
		missing.AccountNotFound = r.accountAbsent(ctx)
		return failed(missing, applying)
	}

	if err != nil {
		return failed(err, applying)
	}

	r.memory.permitted = r.change.goal.digest

	return report.Result{}
}

// accountAbsent reports whether the provider's ServiceAccount is known not to exist. Permissions can be
// granted to one before it does.
func (r *run) accountAbsent(ctx context.Context) bool {
	user := r.target.Account
	key := client.ObjectKey{Namespace: r.provider.GetNamespace(), Name: user[strings.LastIndex(user, ":")+1:]}

	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))

	return apierrors.IsNotFound(r.target.APIReader.Get(ctx, key, account))
}

// installation describes what is installed with the provider's account: the wanted revision, and until
// its objects are gone also the installed one.
func (r *run) installation(wanted *release.Record) permissions.Installation {
	objects := wanted.Objects
	if r.installed.record != nil {
		objects = slices.Concat(objects, r.installed.record.Objects)
	}

	return permissions.Installation{
		Mapper:   r.target.Client.RESTMapper(),
		Provider: r.provider,
		Chart:    r.change.plan.Chart.Chart,
		Values:   r.change.plan.Release.Values,
		Objects:  objects,
		Remote:   r.target.Remote,
	}
}
