package e2e

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())

	return value
}

// createUsersObjects creates a few objects of the providers' kinds, in their storage versions.
// Their webhooks have no server here, so they are ignored meanwhile.
func (w *world) createUsersObjects(ctx context.Context) []*unstructured.Unstructured {
	GinkgoHelper()

	capi := schema.GroupVersion{Group: "cluster.x-k8s.io", Version: "v1beta2"}
	infrastructure := schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2"}
	reference := func(group, kind string) map[string]any {
		return map[string]any{"apiGroup": group, "kind": kind, "name": "users"}
	}
	specs := []struct {
		gvk  schema.GroupVersionKind
		spec map[string]any
	}{
		{capi.WithKind("Cluster"), map[string]any{"infrastructureRef": reference(infrastructure.Group, "AWSCluster")}},
		{capi.WithKind("Machine"), map[string]any{
			"clusterName": "users", "infrastructureRef": reference(infrastructure.Group, "AWSMachine"),
			"bootstrap": map[string]any{"dataSecretName": "none"},
		}},
		{infrastructure.WithKind("AWSCluster"), map[string]any{"region": "eu-central-1"}},
	}

	var objects []*unstructured.Unstructured

	for _, s := range specs {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": s.spec}}
		o.SetGroupVersionKind(s.gvk)
		o.SetNamespace("default")
		o.SetName("users")
		w.pastWebhooks(ctx, s.gvk.Kind, func() error { return w.client.Create(ctx, o) })

		objects = append(objects, o)
	}

	return objects
}

// pastWebhooks calls a function until it succeeds while the API server ignores webhooks, which have no server. The
// operator is frozen meanwhile, as it would correct them.
func (w *world) pastWebhooks(ctx context.Context, what string, do func() error) {
	GinkgoHelper()

	Expect(w.operator.Freeze()).To(Succeed())
	defer func() { Expect(w.operator.Thaw()).To(Succeed()) }()

	Eventually(func() error {
		w.ignoreWebhooks(ctx)
		return do()
	}).Should(Succeed(), what)
}

// ignoreWebhooks makes the API server ignore webhooks, until the operator corrects that.
func (w *world) ignoreWebhooks(ctx context.Context) {
	validating := &admissionv1.ValidatingWebhookConfigurationList{}

	mutating := &admissionv1.MutatingWebhookConfigurationList{}
	for _, list := range []client.ObjectList{validating, mutating} {
		Expect(w.client.List(ctx, list)).To(Succeed())
	}

	ignore := admissionv1.Ignore

	for i := range validating.Items {
		for j := range validating.Items[i].Webhooks {
			validating.Items[i].Webhooks[j].FailurePolicy = &ignore
		}

		_ = w.client.Update(ctx, &validating.Items[i]) // retried on a conflict
	}

	for i := range mutating.Items {
		for j := range mutating.Items[i].Webhooks {
			mutating.Items[i].Webhooks[j].FailurePolicy = &ignore
		}

		_ = w.client.Update(ctx, &mutating.Items[i])
	}
}

// observeOutages watches objects of a provider that must always exist. The function that it returns
// reports which ones were deleted, and the minimum of available replicas.
func (w *world) observeOutages(ctx context.Context, label string) func() (outages []string, least int32) {
	GinkgoHelper()

	watcher, err := client.NewWithWatch(w.bed.Config(), client.Options{Scheme: w.client.Scheme()})
	Expect(err).NotTo(HaveOccurred())

	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		outages []string
	)

	least := int32(-1)

	var watches []watch.Interface

	for _, list := range []client.ObjectList{
		&corev1.ServiceList{},
		&admissionv1.ValidatingWebhookConfigurationList{},
		&admissionv1.MutatingWebhookConfigurationList{},
		&appsv1.DeploymentList{},
	} {
		events, err := watcher.Watch(ctx, list, client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: label})
		Expect(err).NotTo(HaveOccurred())

		watches = append(watches, events)

		group.Go(func() {
			for event := range events.ResultChan() {
				mu.Lock()
				if event.Type == watch.Deleted {
					outages = append(outages, fmt.Sprintf("%s was deleted", event.Object.(metav1.Object).GetName()))
				}

				if d, ok := event.Object.(*appsv1.Deployment); ok && (least < 0 || d.Status.AvailableReplicas < least) {
					least = d.Status.AvailableReplicas
				}
				mu.Unlock()
			}
		})
	}

	return func() ([]string, int32) {
		for _, w := range watches {
			w.Stop()
		}

		group.Wait()

		return outages, least
	}
}
