package conformance

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// crds returns the provider's CRDs as they are in the cluster.
func (c *check) crds(
	ctx context.Context,
	components *bundle.Components,
) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var found []*apiextensionsv1.CustomResourceDefinition

	for _, doc := range components.Documents {
		if !doc.IsCRD() {
			continue
		}

		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.client.Get(ctx, client.ObjectKey{Name: doc.Object.GetName()}, crd); err != nil {
			return nil, err
		}

		found = append(found, crd)
	}

	return found, nil
}

// injectCA sets the certificate authority of conversion webhooks, as cert-manager does, whose controllers do
// not run in a bed.
func (c *check) injectCA(ctx context.Context, components *bundle.Components) error {
	crds, err := c.crds(ctx, components)
	if err != nil {
		return err
	}

	for _, crd := range crds {
		base := crd.DeepCopy()
		conversion := crd.Spec.Conversion

		if conversion == nil || conversion.Webhook == nil || len(conversion.Webhook.ClientConfig.CABundle) > 0 {
			continue
		}

		conversion.Webhook.ClientConfig.CABundle = c.bed.Config().CAData
		if err := c.client.Patch(ctx, crd, client.MergeFrom(base)); err != nil {
			return err
		}
	}

	return nil
}

// waitMigrated waits until the operator has migrated all objects to the storage version, which follows an
// upgrade. The audit reports it if that takes too long.
func (c *check) waitMigrated(ctx context.Context, components *bundle.Components) error {
	_, err := c.poll(ctx, func(ctx context.Context) (bool, error) {
		crds, err := c.crds(ctx, components)
		if err != nil {
			return false, err
		}

		for _, crd := range crds {
			if stored := crd.Status.StoredVersions; len(stored) != 1 || stored[0] != versions.StorageName(crd) {
				return false, nil
			}
		}

		return true, nil
	})

	return err
}
