package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/capi/canary"
	"github.com/capstan-project/capstan/test/capi/managers"
	"github.com/capstan-project/capstan/test/capi/observe"
)

// startCanaries starts one canary for each provider. They end with the context.
func startCanaries(ctx context.Context) []*canary.Canary {
	GinkgoHelper()

	var canaries []*canary.Canary

	for _, label := range managers.Labels {
		probe, err := canary.NewProbe(ctx, admin, label)
		Expect(err).NotTo(HaveOccurred())
		Expect(probe).NotTo(BeNil(), label)
		GinkgoWriter.Printf("%s is asked by dry run of %s\n", label, probe)

		canaries = append(canaries, canary.Start(ctx, label, probe.Attempt))
	}

	return canaries
}

// watchRouting returns when a pod is no longer a ready endpoint of a Service: before, kube-proxy cannot know of it.
func watchRouting(ctx context.Context, pod *corev1.Pod) <-chan time.Time {
	GinkgoHelper()

	clientset, err := kubernetes.NewForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())

	endpoints, err := clientset.DiscoveryV1().EndpointSlices(pod.Namespace).Watch(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())

	unrouted := make(chan time.Time, 1)

	go func() {
		defer endpoints.Stop()

		for event := range endpoints.ResultChan() {
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok {
				continue
			}

			for _, endpoint := range slice.Endpoints {
				if endpoint.TargetRef.Name == pod.Name && !ptr.Deref(endpoint.Conditions.Ready, true) {
					unrouted <- time.Now()
					return
				}
			}
		}
	}()

	return unrouted
}

// watchLives records what happens to Clusters and Machines until the context ends.
func watchLives(ctx context.Context) *observe.Lives {
	GinkgoHelper()

	source, err := dynamic.NewForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())

	lives := &observe.Lives{}
	observed := func(o any) { lives.Observe(o.(*unstructured.Unstructured)) }
	factory := dynamicinformer.NewDynamicSharedInformerFactory(source, 0)

	for _, resource := range []string{"clusters", "machines"} {
		informer := factory.ForResource(schema.GroupVersionResource{
			Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: resource,
		}).Informer()
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    observed,
			UpdateFunc: func(_, o any) { observed(o) },
			DeleteFunc: func(o any) {
				if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = last.Obj
				}

				lives.ObserveDeletion(o.(*unstructured.Unstructured))
			},
		})
		Expect(err).NotTo(HaveOccurred())
	}

	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	return lives
}

// expectConversions lists all objects of Cluster API's kinds in every served version, which converts those that are
// stored in another one. It returns how many kinds and versions there are.
func expectConversions(ctx context.Context, g Gomega) string {
	definitions := &apiextensionsv1.CustomResourceDefinitionList{}
	g.Expect(admin.List(ctx, definitions)).To(Succeed())

	kinds, versions, objects := 0, 0, 0

	for _, crd := range definitions.Items {
		group := crd.Spec.Group
		if group == v1alpha2.GroupVersion.Group || !strings.HasSuffix("."+group, ".cluster.x-k8s.io") {
			continue
		}

		kinds++

		var names [][]string

		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}

			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(
				schema.GroupVersionKind{Group: group, Version: version.Name, Kind: crd.Spec.Names.ListKind})
			g.Expect(admin.List(ctx, list)).To(Succeed(), "%s in %s", crd.Name, version.Name)

			names = append(names, namesIn(list))
			versions++
			objects += len(list.Items)
		}

		for _, other := range names {
			g.Expect(other).To(Equal(names[0]), crd.Name)
		}
	}

	return fmt.Sprintf("%d objects read in %d served versions of %d kinds", objects, versions, kinds)
}

// namesIn returns the names of the objects in a list.
func namesIn(list *unstructured.UnstructuredList) []string {
	var names []string

	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]).String())
	}

	slices.Sort(names)

	return names
}
