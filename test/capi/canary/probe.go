package canary

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Probe asks the webhooks of a provider, by the dry run of a creation.
type Probe struct {
	client client.Client
	label  string
	object *unstructured.Unstructured
}

// NewProbe finds out which creation the webhooks of a provider, by its label, answer. It returns nil if there is none.
func NewProbe(ctx context.Context, c client.Client, label string) (*Probe, error) {
	p := &Probe{client: c, label: label}

	found, err := p.find(ctx)
	if err != nil || !found {
		return nil, err
	}

	return p, nil
}

// String returns the kind and version of the object that is created.
func (p *Probe) String() string {
	return p.object.GetKind() + " " + p.object.GroupVersionKind().Version
}

// Attempt returns nil if the webhooks answer, also if they deny the object. If the version of the object is no longer
// served, another one is used from now on.
func (p *Probe) Attempt(ctx context.Context) error {
	err := p.create(ctx, p.object)

	if apierrors.IsNotFound(err) {
		if found, findErr := p.find(ctx); findErr != nil || !found {
			return err
		}

		err = p.create(ctx, p.object)
	}

	if answerOf(err) == served {
		return nil
	}

	return err
}

func (p *Probe) create(ctx context.Context, o *unstructured.Unstructured) error {
	return p.client.Create(ctx, o.DeepCopy(), client.DryRunAll)
}

// find sets the object to the one that most kinds of webhooks answer now. If none answers, it is the one that most
// should. It reports whether there is one.
func (p *Probe) find(ctx context.Context) (bool, error) {
	w, err := p.read(ctx)
	if err != nil {
		return false, err
	}

	var (
		best *unstructured.Unstructured
		most = -1
	)

	for _, r := range w.requests() {
		if most >= r.webhooks() {
			break // the others have no more webhooks
		}

		if reached := r.reached(p.create(ctx, r.object)); reached > most {
			best, most = r.object, reached
		}
	}

	if best == nil {
		return false, nil
	}

	p.object = best

	return true, nil
}

// read returns what the cluster knows of the provider's webhooks.
func (p *Probe) read(ctx context.Context) (*webhooks, error) {
	var (
		ofProvider = client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: p.label}
		crds       = &apiextensionsv1.CustomResourceDefinitionList{}
		mutating   = &admissionv1.MutatingWebhookConfigurationList{}
		validating = &admissionv1.ValidatingWebhookConfigurationList{}
	)

	for _, list := range []client.ObjectList{crds, mutating, validating} {
		if err := p.client.List(ctx, list, ofProvider); err != nil {
			return nil, fmt.Errorf("list the webhooks of %s: %w", p.label, err)
		}
	}

	w := &webhooks{crds: crds.Items}
	for i := range mutating.Items {
		w.mutating = append(w.mutating, mutating.Items[i].Webhooks...)
	}

	for i := range validating.Items {
		for _, v := range validating.Items[i].Webhooks {
			w.validating = append(w.validating, admissionv1.MutatingWebhook{
				Rules: v.Rules, FailurePolicy: v.FailurePolicy, MatchPolicy: v.MatchPolicy,
				NamespaceSelector: v.NamespaceSelector, ObjectSelector: v.ObjectSelector, MatchConditions: v.MatchConditions,
			})
		}
	}

	return w, nil
}
