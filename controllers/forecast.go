package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/dryrun"
)

// maxPasses bounds the reconciles of a forecast.
const maxPasses = 20

// Forecast runs the reconciles that follow if a resource is created, or changed as given, until nothing more would
// be written. What is applied is assumed to become healthy between two reconciles. The error is one of the change,
// which the API server may refuse.
func (d *DryRun) Forecast(ctx context.Context, changed v1alpha2.Provider) ([]Pass, error) {
	if err := d.change(ctx, changed); err != nil {
		return nil, err
	}

	var passes []Pass

	for range maxPasses {
		pass, err := d.Reconcile(ctx, changed)
		if err != nil {
			return nil, err
		}

		passes = append(passes, pass)

		assumed := d.transport.Update(becomeHealthy)
		if pass.Gone || !assumed && !pass.continues() {
			break
		}
	}

	return passes, nil
}

// becomeHealthy changes what is applied for a provider, and no provider resource.
func becomeHealthy(o *unstructured.Unstructured) bool {
	return o.GetAPIVersion() != v1alpha2.GroupVersion.String() && dryrun.BecomeHealthy(o)
}

// continues reports whether another reconcile follows soon, because this one has changed something.
func (p Pass) continues() bool { return len(p.Writes) > 0 && len(p.Unknown) == 0 }

// change writes the changed resource: the API server completes and checks it.
func (d *DryRun) change(ctx context.Context, changed v1alpha2.Provider) error {
	existing := changed.ProviderType().New()

	err := d.Client.Get(ctx, client.ObjectKeyFromObject(changed), existing)
	if client.IgnoreNotFound(err) != nil {
		return err
	}

	if err != nil {
		created := changed.DeepCopyObject().(v1alpha2.Provider) //nolint:forcetypeassert // a copy has the type
		created.SetResourceVersion("")
		created.SetUID("")

		if err = d.Client.Create(ctx, created); err != nil {
			return fmt.Errorf("create %s: %w", v1alpha2.FullName(changed), err)
		}

		return nil
	}

	changed.GetSpec().DeepCopyInto(existing.GetSpec())
	existing.SetLabels(merged(existing.GetLabels(), changed.GetLabels()))
	existing.SetAnnotations(merged(existing.GetAnnotations(), changed.GetAnnotations()))

	if err := d.Client.Update(ctx, existing); err != nil {
		return fmt.Errorf("change %s: %w", v1alpha2.FullName(changed), err)
	}

	return nil
}

func merged(before, after map[string]string) map[string]string {
	if before == nil {
		return after
	}

	for key, value := range after {
		before[key] = value
	}

	return before
}

// Ready returns the condition that the reconcile reports; nil for none.
func (p Pass) Ready() *metav1.Condition {
	return meta.FindStatusCondition(p.Status.Conditions, v1alpha2.ReadyCondition)
}
