package conformance

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// disableWebhooks deletes the admission webhooks of an installed provider, to which no process responds. It suspends
// the resource, because the operator would restore them.
func (c *check) disableWebhooks(ctx context.Context, p v1alpha2.Provider) error {
	if err := c.suspend(ctx, p, true); err != nil {
		return err
	}

	// The operator may be in the middle of correcting drift.
	problem, err := c.waitReady(ctx, p, p.GetSpec().Version)
	if err != nil {
		return err
	}

	if problem != "" {
		return fmt.Errorf("suspend %s: %s", v1alpha2.Label(p), problem)
	}

	ofProvider := client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(p)}
	if err := c.client.DeleteAllOf(ctx, &admissionv1.MutatingWebhookConfiguration{}, ofProvider); err != nil {
		return err
	}

	return c.client.DeleteAllOf(ctx, &admissionv1.ValidatingWebhookConfiguration{}, ofProvider)
}

// suspend suspends the resource of a provider, or resumes it.
func (c *check) suspend(ctx context.Context, p v1alpha2.Provider, suspended bool) error {
	base := p.DeepCopyObject().(client.Object)
	p.GetSpec().Suspend = suspended

	return c.client.Patch(ctx, p, client.MergeFrom(base))
}
