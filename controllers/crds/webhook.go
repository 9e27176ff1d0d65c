package crds

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// conversion is the field of a CRD with its webhook. An apply removes from it only what Capstan has applied, and the
// API server refuses what would stay: the certificate that cert-manager has injected. What another installer has
// applied would even stay as it is, and name a webhook that no longer exists.
var conversion = fieldpath.MakePathOrDie("spec", "conversion")

// dropsWebhook reports whether a change takes the conversion webhook from a CRD that has one.
func (c *change) dropsWebhook(applied *unstructured.Unstructured) bool {
	return c.live != nil && c.live.Spec.Conversion != nil &&
		c.live.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter &&
		bundle.NestedString(applied.Object, "spec", "conversion", "strategy") != string(apiextensionsv1.WebhookConverter)
}

// keepWebhook returns what a dry run applies instead of a CRD that loses its webhook, which stays until the CRD is
// applied.
func (c *change) keepWebhook(applied *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kept, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.live.Spec.Conversion)
	if err != nil {
		return nil, err
	}

	trial := applied.DeepCopy()

	if err := unstructured.SetNestedMap(trial.Object, kept, "spec", "conversion"); err != nil {
		return nil, err
	}

	bundle.RemoveCABundle(trial.Object)

	return trial, nil
}

// takeConversion makes the conversion of a CRD Capstan's, so that the apply that follows removes it. Nothing but the
// managed fields of the CRD changes.
func (a *Applier) takeConversion(ctx context.Context, name string) error {
	crds := a.Metadata.Resource(crdResource)

	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}

		entries, err := moveTo(conversion, live.ManagedFields)
		if err != nil {
			return err
		}

		return replaceManagedFields(ctx, crds, live, entries, metav1.PatchOptions{FieldManager: v1alpha2.FieldOwner})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("apply CustomResourceDefinition %s: %w", name, err)
	}

	return nil
}

// moveTo returns managed fields in which what others own of a field is Capstan's.
func moveTo(field fieldpath.Path, entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	own := metav1.ManagedFieldsEntry{
		Manager: v1alpha2.FieldOwner, Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: apiextensionsv1.SchemeGroupVersion.String(), FieldsType: "FieldsV1",
	}
	owned := fieldpath.NewSet(field)

	var kept []metav1.ManagedFieldsEntry

	for _, entry := range entries {
		fields := &fieldpath.Set{}
		if entry.FieldsV1 != nil {
			if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
				return nil, err
			}
		}

		if isApplyByCapstan(entry) {
			own, owned = entry, owned.Union(fields)
			continue
		}

		staying := fields.RecursiveDifference(fieldpath.NewSet(field))
		owned = owned.Union(fields.Difference(staying))

		if staying.Empty() {
			continue
		}

		var err error
		if entry.FieldsV1, err = encode(staying); err != nil {
			return nil, err
		}

		kept = append(kept, entry)
	}

	var err error

	own.FieldsV1, err = encode(owned)

	return append(kept, own), err
}

func encode(fields *fieldpath.Set) (*metav1.FieldsV1, error) {
	content, err := fields.ToJSON()
	return metav1.NewFieldsV1(string(content)), err
}
