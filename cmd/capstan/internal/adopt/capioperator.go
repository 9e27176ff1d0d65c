package adopt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/predecessor"
)

const (
	// stopTimeout is how long cluster-api-operator may take to stop, and stopInterval how often that is looked at.
	stopTimeout  = 2 * time.Minute
	stopInterval = 300 * time.Millisecond
)

// capiOperator is cluster-api-operator, whose resources are of the same kinds. Capstan's operator takes over those that
// it sees once the other operator has stopped; its finalizers, the CRDs and the objects of providers are the operator's
// work. What is left is in the steps.
type capiOperator struct{}

var _ Source = capiOperator{}

// Name implements Source.
func (capiOperator) Name() string { return "cluster-api-operator" }

// Find implements Source. A resource that Capstan's operator has taken over already is found by the Secret that
// cluster-api-operator has cached its components in.
func (capiOperator) Find(ctx context.Context, cluster *cli.Cluster) (*Found, error) {
	found := &Found{}
	if served, err := cluster.HasProviderKinds(); err != nil || !served {
		return found, err
	}

	providers, err := cluster.ProvidersIn(ctx, cluster.Namespace)
	if err != nil {
		return nil, err
	}

	for _, p := range providers {
		caches, err := cachesOf(ctx, cluster.Client, p)
		if err != nil {
			return nil, err
		}

		if !predecessor.Manages(p) && len(caches) == 0 {
			continue
		}

		installation := Installation{Provider: p}
		for i := range caches {
			installation.After = append(installation.After, deletion(cluster.Client, &caches[i], "Secret",
				", which has the components with the values of variables"))
		}

		found.Installations = append(found.Installations, installation)
	}

	if len(found.Installations) > 0 {
		found.Before, err = stopping(ctx, cluster.Client, found.Installations)
	}

	return found, err
}

// cachesOf returns the Secrets in which cluster-api-operator caches what it has installed for a resource, one for each
// version.
func cachesOf(ctx context.Context, c client.Client, p v1alpha2.Provider) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))

	if err := c.List(ctx, list, client.InNamespace(p.GetNamespace())); err != nil {
		return nil, fmt.Errorf("list the Secrets of %s: %w", v1alpha2.FullName(p), err)
	}

	return slices.DeleteFunc(list.Items, func(secret metav1.PartialObjectMetadata) bool {
		owned := slices.ContainsFunc(secret.OwnerReferences, func(owner metav1.OwnerReference) bool {
			return owner.UID == p.GetUID()
		})
		name := p.ProviderType().Name() + "-" + p.GetName() + "-"

		return !owned || !strings.HasPrefix(secret.Name, name) || !strings.HasSuffix(secret.Name, "-cache")
	}), nil
}

// stopping returns the steps that stop cluster-api-operator, and then let Capstan's operator take the resources over.
func stopping(ctx context.Context, c client.Client, installations []Installation) ([]Step, error) {
	var steps []Step

	deployments := &appsv1.DeploymentList{}
	if err := c.List(ctx, deployments, predecessor.Labels()); err != nil {
		return nil, fmt.Errorf("list the Deployments of cluster-api-operator: %w", err)
	}

	for i := range deployments.Items {
		d := &deployments.Items[i]
		if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
			continue
		}

		steps = append(steps, Step{
			Description: fmt.Sprintf("Scale Deployment %s to 0", client.ObjectKeyFromObject(d)),
			Do:          func(ctx context.Context) error { return scaleDown(ctx, c, d) },
		})
	}

	webhooks, err := webhooksOf(ctx, c)
	if err != nil {
		return nil, err
	}

	return append(append(steps, webhooks...), Step{
		Description: "Ask Capstan's operator to take over " + cli.Count(len(installations), "resource"),
		Do:          func(ctx context.Context) error { return request(ctx, c, installations) },
	}), nil
}

// scaleDown scales a Deployment of cluster-api-operator to zero, and waits until its pods have ended.
func scaleDown(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
	if err := c.Patch(ctx, d, patch, cli.FieldOwner); err != nil {
		return err
	}

	pods := &corev1.PodList{}
	err := wait.PollUntilContextTimeout(ctx, stopInterval, stopTimeout, true, func(ctx context.Context) (bool, error) {
		err := c.List(ctx, pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels))
		pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !predecessor.Runs(&pod) })

		return err == nil && len(pods.Items) == 0, err
	})

	if wait.Interrupted(err) && len(pods.Items) > 0 {
		return fmt.Errorf("pod %s has not ended within %s", pods.Items[0].Name, stopTimeout)
	}

	return err
}

// webhooksOf returns the steps that delete the webhooks of cluster-api-operator: without it, they refuse every change
// of a resource.
func webhooksOf(ctx context.Context, c client.Client) ([]Step, error) {
	var steps []Step

	for kind, list := range map[string]client.ObjectList{
		"MutatingWebhookConfiguration":   &admissionv1.MutatingWebhookConfigurationList{},
		"ValidatingWebhookConfiguration": &admissionv1.ValidatingWebhookConfigurationList{},
	} {
		if err := c.List(ctx, list, predecessor.Labels()); err != nil {
			return nil, fmt.Errorf("list the webhooks of cluster-api-operator: %w", err)
		}

		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}

		for _, item := range items {
			steps = append(steps, deletion(c, item.(client.Object), kind, ""))
		}
	}

	slices.SortFunc(steps, func(a, b Step) int { return strings.Compare(a.Description, b.Description) })

	return steps, nil
}

// deletion returns the step that deletes an object of a kind.
func deletion(c client.Client, o client.Object, kind, why string) Step {
	name := strings.TrimPrefix(client.ObjectKeyFromObject(o).String(), "/")

	return Step{
		Description: fmt.Sprintf("Delete %s %s%s", kind, name, why),
		Do: func(ctx context.Context) error {
			return client.IgnoreNotFound(c.Delete(ctx, o, client.Preconditions{UID: new(o.GetUID())}))
		},
	}
}

// request requests a reconcile of the resources: after webhooks have refused changes for long, the operator waits long
// for its next attempt.
func request(ctx context.Context, c client.Client, installations []Installation) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`,
		v1alpha2.ReconcileRequestAnnotation, time.Now().Format(time.RFC3339Nano)))

	for _, i := range installations {
		// The resource itself keeps the state in which it is compared.
		o := i.Provider.DeepCopyObject().(client.Object)
		if err := c.Patch(ctx, o, patch, cli.FieldOwner); err != nil {
			return fmt.Errorf("change %s: %w", v1alpha2.FullName(i.Provider), err)
		}
	}

	return nil
}

// takenOver is met when Capstan's operator has adopted a provider that is ready. Until it sees the resource, status and
// finalizer can be cluster-api-operator's, and the refusal of a change can be the one of its webhooks.
func takenOver(p v1alpha2.Provider) (bool, error) {
	if p != nil && (predecessor.Manages(p) ||
		conditions.GetReason(p, v1alpha2.StalledCondition) == v1alpha2.ChangeRefusedReason) {
		return false, nil
	}

	ready, err := cli.Ready(p)

	return ready && p.GetStatus().Release != nil, err
}
