package controllers

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
	"github.com/capstan-project/capstan/controllers/permissions"
	"github.com/capstan-project/capstan/controllers/release"
)

// permitted makes sure that the account that the provider is installed with may do all that, before
// anything is done. What was permitted once for the same release is not asked again.
func (r *Reconciler) permitted(
	ctx context.Context,
	provider v1alpha2.Provider,
	chart *providerChart,
	desired release.Desired,
) error {
	if r.Account == "" {
		return nil
	}

	digest, err := r.Releases.Digest(desired)
	if err != nil {
		return &installError{err}
	}

	if known, ok := r.Permitted.Load(provider.GetUID()); ok && known == digest && !requested(provider) {
		return nil
	}

	record, err := r.Releases.Render(ctx, desired)
	if err != nil {
		return &installError{err}
	}

	needed, err := r.needed(provider, chart, record)
	if err != nil {
		return &installError{err}
	}

	checker := &permissions.Checker{Client: r.Target.Client, Account: r.Account}

	err = checker.Check(ctx, needed, record.Objects)
	if err == nil {
		r.Permitted.Store(provider.GetUID(), digest)
		return nil
	}

	if missing := (*permissions.MissingError)(nil); errors.As(err, &missing) {
		missing.AccountNotFound = r.noAccount(ctx, provider)
		return missing
	}

	return &installError{err}
}

// noAccount reports whether the provider's ServiceAccount is known not to exist. Rights can be granted
// to one before it does.
func (r *Reconciler) noAccount(ctx context.Context, provider v1alpha2.Provider) bool {
	name := r.Account[strings.LastIndex(r.Account, ":")+1:]
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))

	return apierrors.IsNotFound(
		r.APIReader.Get(ctx, client.ObjectKey{Namespace: provider.GetNamespace(), Name: name}, account),
	)
}

// needed are the accesses that it takes to install the provider.
func (r *Reconciler) needed(
	provider v1alpha2.Provider,
	chart *providerChart,
	record *release.Record,
) ([]permissions.Permission, error) {
	needed, err := permissions.ForObjects(r.Target.Client.RESTMapper(), record.Objects)
	if err != nil {
		return nil, err
	}

	needed = append(needed, permissions.ForHelmStorage(provider.GetNamespace()))
	if spec := provider.GetSpec().CRDs; len(chart.Chart.CRDs) > 0 && (spec == nil || spec.Policy != v1alpha2.CRDsNone) {
		needed = append(needed, permissions.ForCRDs())
	}

	labels, err := chartgen.NamespaceLabels(chart.Chart)
	if len(labels) > 0 {
		needed = append(needed, permissions.ForNamespaceLabels())
	}

	return needed, err
}
