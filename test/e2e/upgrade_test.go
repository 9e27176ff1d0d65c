package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// Real providers are upgraded and downgraded while users' objects exist. Nothing converts objects
// here, so they are read in their storage version.
var _ = Describe("Upgrades of real providers", Ordered, func() {
	var (
		realProviders string
		w             *world
		objects       []*unstructured.Unstructured
	)

	providers := map[string]v1alpha2.Provider{}

	BeforeAll(func(ctx SpecContext) {
		realProviders = testproviders.Folder(GinkgoT())

		w = newWorld(ctx)
		w.start()

		for _, wanted := range []harness.Wanted{
			{Label: "cluster-api", Version: "v1.12.11"},
			{Label: "infrastructure-docker", Version: "v1.13.5"},
			{Label: "infrastructure-aws", Version: "v2.10.3", Variables: harness.AWSVariables},
		} {
			release, err := harness.Load(ctx, realProviders, wanted)
			Expect(err).NotTo(HaveOccurred())
			Expect(release.Prepare(ctx, w.client)).To(Succeed())
			p := release.Resource()
			p.GetSpec().Deployment = &v1alpha2.DeploymentSpec{Replicas: ptr.To(int32(2))}
			Expect(w.client.Create(ctx, p)).To(Succeed())
			Eventually(w.read(ctx, p)).Should(beReady(wanted.Version))
			providers[wanted.Label] = p
		}

		objects = w.createUsersObjects(ctx)
	})

	DescribeTable(
		"succeed in place, without an outage, and without losing objects",
		func(ctx SpecContext, label, version string) {
			p := providers[label]
			release, err := harness.Load(
				ctx,
				realProviders,
				harness.Wanted{Label: label, Version: version, Variables: harness.AWSVariables},
			)
			Expect(err).NotTo(HaveOccurred())
			Expect(client.IgnoreAlreadyExists(w.client.Create(ctx, must(release.ConfigMap())))).To(Succeed())

			deployments := &appsv1.DeploymentList{}
			Expect(w.client.List(ctx, deployments, client.InNamespace(p.GetNamespace()))).To(Succeed())
			Expect(deployments.Items).To(HaveLen(1))
			before := deployments.Items[0]
			seen := w.observeOutages(ctx, label)

			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = version })
			Eventually(w.read(ctx, p)).Should(beReady(version))

			outages, least := seen()
			Expect(outages).To(BeEmpty())
			Expect(least).To(BeNumerically(">=", 1), "available replicas")

			after := &appsv1.Deployment{}
			Expect(w.client.Get(ctx, client.ObjectKeyFromObject(&before), after)).To(Succeed())
			Expect(after.UID).To(Equal(before.UID))
			Expect(after.Spec.Template.Spec.Containers[0].Image).NotTo(Equal(before.Spec.Template.Spec.Containers[0].Image))

			w.expectAlive(ctx, objects)
		},
		Entry("core to the next minor", "cluster-api", "v1.13.5"),
		Entry("core to the newest", "cluster-api", "v1.14.0"),
		Entry("docker", "infrastructure-docker", "v1.14.0"),
		Entry("docker, and back", "infrastructure-docker", "v1.13.5"),
		Entry("aws", "infrastructure-aws", "v2.11.1"),
	)

	It("replace only the object in which an immutable field changes", func(ctx SpecContext) {
		const label = "runtime-extension-test"

		repository := GinkgoT().TempDir()
		Expect(os.Symlink(filepath.Join(realProviders, "runtime-extension"), filepath.Join(repository, label))).To(Succeed())
		p := w.install(ctx, repository, harness.Wanted{Label: label, Version: "v1.11.11"})
		Eventually(w.read(ctx, p)).Should(beReady("v1.11.11"))

		uids := func() map[string]types.UID {
			found := map[string]types.UID{}

			for _, list := range []client.ObjectList{
				&appsv1.DeploymentList{},
				&corev1.ServiceList{},
				&corev1.ServiceAccountList{},
			} {
				Expect(
					w.client.List(
						ctx,
						list,
						client.InNamespace(p.GetNamespace()),
						client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: label},
					),
				).To(Succeed())
				Expect(meta.EachListItem(list, func(o runtime.Object) error {
					found[fmt.Sprintf("%T %s", o, o.(client.Object).GetName())] = o.(client.Object).GetUID()
					return nil
				})).To(Succeed())
			}

			return found
		}
		before := uids()
		newer, err := harness.Load(ctx, repository, harness.Wanted{Label: label, Version: "v1.12.11"})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.client.Create(ctx, must(newer.ConfigMap()))).To(Succeed())
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.12.11" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.12.11"))

		after := uids()
		Expect(after).To(HaveLen(len(before)))

		for name, uid := range before {
			if name == "*v1.Deployment test-extension-controller-manager" {
				Expect(after[name]).NotTo(Equal(uid), "its selector has changed")
			} else {
				Expect(after[name]).To(Equal(uid), name)
			}
		}
	})
})

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
		Eventually(func() error {
			w.ignoreWebhooks(ctx)
			return w.client.Create(ctx, o)
		}).Should(Succeed(), s.gvk.Kind)

		objects = append(objects, o)
	}

	return objects
}

// ignoreWebhooks makes the API server ignore webhooks that have no server, until the operator
// corrects that.
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

		_ = w.client.Update(ctx, &validating.Items[i]) // retried on a conflict with the operator
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
