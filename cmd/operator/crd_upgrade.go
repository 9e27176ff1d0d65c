package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/charts"
)

// versionAnnotation holds, on a CRD, the version of the operator that applied it last.
const versionAnnotation = v1alpha2.Prefix + "/operator-version"

// upgradeCRDs upgrades the operator's own CustomResourceDefinitions in the cluster to those of the given version of the
// operator. It does not change those that a newer version applied, so that a downgrade of the
// operator removes no fields. It does not install missing ones: that is part of the operator's
// installation. Those of cluster-api-operator lose what only that needs.
func upgradeCRDs(ctx context.Context, c client.Client, version string) error {
	definitions, err := charts.CRDs()
	if err != nil {
		return err
	}

	var failed []error

	for _, definition := range definitions {
		if err := upgradeCRD(ctx, c, definition, version); err != nil {
			failed = append(failed, fmt.Errorf("upgrade CustomResourceDefinition %s: %w", definition.GetName(), err))
		}
	}

	return errors.Join(failed...)
}

func upgradeCRD(ctx context.Context, c client.Client, definition *unstructured.Unstructured, version string) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(definition.GroupVersionKind())

	err := c.Get(ctx, client.ObjectKeyFromObject(definition), live)
	if apierrors.IsNotFound(err) {
		return errNoCRD
	}

	if err != nil {
		return err
	}

	if isNewer(live.GetAnnotations()[versionAnnotation], version) {
		return nil
	}

	patch, err := handOver(live, definition)
	if err != nil {
		return err
	}

	if patch != nil {
		err := c.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha2.FieldOwner))
		if err != nil {
			return fmt.Errorf("take it over from cluster-api-operator: %w", err)
		}
	}

	annotations := definition.GetAnnotations()
	annotations[versionAnnotation] = version
	definition.SetAnnotations(annotations)

	return c.Apply(
		ctx,
		client.ApplyConfigurationFromUnstructured(definition),
		client.FieldOwner(v1alpha2.FieldOwner),
		client.ForceOwnership,
	)
}

// isNewer reports whether version a is newer than b. A version that is not semantic, such as that of
// a local build, is older than any other.
func isNewer(a, b string) bool {
	first, err := semver.NewVersion(a)
	if err != nil {
		return false
	}

	second, err := semver.NewVersion(b)

	return err == nil && first.GreaterThan(second)
}
