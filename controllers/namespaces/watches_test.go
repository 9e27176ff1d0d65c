package namespaces_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-project/capstan/controllers/namespaces"
)

// A busy machine may need more than the second that Gomega waits by default.
func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(time.Minute)
	m.Run()
}

var docker = types.NamespacedName{Namespace: "capd", Name: "infrastructure-docker"}

// object returns the metadata of an object with labels, each "key=value".
func object(kind, namespace, name string, labels ...string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{},
	}}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))

	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		m.Labels[key] = value
	}

	return m
}

// newCluster returns a fake cluster with objects.
func newCluster(t *testing.T, objects ...runtime.Object) *metadatafake.FakeMetadataClient {
	scheme := metadatafake.NewTestScheme()
	NewWithT(t).Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())

	return metadatafake.NewSimpleMetadataClient(scheme, objects...)
}

// start runs watches of a cluster until the test ends.
func start(t *testing.T, cluster *metadatafake.FakeMetadataClient, only ...string) *namespaces.Watches {
	watches := namespaces.New(cluster, only)
	go func() { _ = watches.Start(t.Context()) }()

	return watches
}

// watched returns the namespaces of all requests.
func watched(cluster *metadatafake.FakeMetadataClient) func() []string {
	return func() []string {
		var found []string
		for _, action := range cluster.Actions() {
			found = append(found, action.GetNamespace())
		}

		return found
	}
}

func known(watches *namespaces.Watches) func() bool {
	return func() bool {
		_, known := watches.Records(docker)
		return known
	}
}

func TestOnlyNamespacesInUseAreWatched(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t)
	watches := start(t, cluster)

	watches.Follow("docker", "capd", "variables", "capd")
	watches.Follow("in-memory", "capd")
	g.Eventually(known(watches)).Should(BeTrue())
	g.Eventually(watched(cluster)).Should(ContainElement("variables"))
	g.Expect(watched(cluster)()).To(HaveEach(BeElementOf("capd", "variables")))

	watches.Follow("docker")
	g.Expect(known(watches)()).To(BeTrue(), "another user needs it")
	watches.Follow("in-memory", "elsewhere")
	g.Expect(known(watches)()).To(BeFalse())
	watches.Follow("docker", "capd")
	g.Eventually(known(watches)).Should(BeTrue(), "it is watched again")
}

func TestOtherNamespacesThanThoseOfTheOperatorAreNotWatched(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t)
	start(t, cluster, "capd").Follow("docker", "capd", "variables")

	g.Eventually(watched(cluster)).Should(HaveLen(4), "a list and a watch of two resources")
	g.Consistently(watched(cluster)).WithTimeout(100 * time.Millisecond).Should(HaveEach("capd"))
}

func TestRecords(t *testing.T) {
	g := NewWithT(t)
	large := object("Secret", "capd", "v1", "owner=helm", "name=infrastructure-docker", "version=1")
	large.Annotations = map[string]string{"large": strings.Repeat("x", 1<<10)}

	for n := range 1000 {
		large.Labels[fmt.Sprint("large-", n)] = "x"
	}

	watches := start(t, newCluster(t, large,
		object("Secret", "capd", "v2", "owner=helm", "name=infrastructure-docker", "version=2", "team=a"),
		object("Secret", "capd", "credentials", "name=infrastructure-docker"),
		object("Secret", "capd", "other", "owner=helm", "name=infrastructure-aws"),
		object("Secret", "other", "v3", "owner=helm", "name=infrastructure-docker"),
	))
	watches.Follow("docker", "capd", "other")

	g.Eventually(known(watches)).Should(BeTrue())

	records, _ := watches.Records(docker)
	g.Expect(records).To(ConsistOf(
		And(HaveField("Name", "v1"), HaveField("Annotations", BeEmpty()),
			HaveField("Labels", Equal(map[string]string{
				"owner": "helm", "name": "infrastructure-docker", "version": "1",
			}))),
		And(HaveField("Name", "v2"), HaveField("Labels", HaveKeyWithValue("team", "a"))),
	))
}

func TestEventsReachControllersThatRun(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t, object("Secret", "capd", "present"))
	watches := start(t, cluster)
	watches.Follow("docker", "capd")
	g.Eventually(known(watches)).Should(BeTrue())

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	source := watches.Source(namespaces.Secrets, handler.EnqueueRequestsFromMapFunc(
		func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
		}))
	g.Expect(source.Start(t.Context(), queue)).To(Succeed())

	next := func() string {
		g.Eventually(queue.Len).ShouldNot(BeZero())

		request, _ := queue.Get()
		queue.Done(request)

		return request.String()
	}

	secrets := cluster.Resource(namespaces.Secrets).Namespace("capd").(metadatafake.MetadataClient)
	_, err := secrets.CreateFake(object("Secret", "capd", "new"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next()).To(Equal("capd/new"))

	changed := object("Secret", "capd", "present", "a=b")
	changed.ResourceVersion = "7"
	_, err = secrets.UpdateFake(changed, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next()).To(Equal("capd/present"))

	g.Expect(secrets.Delete(t.Context(), "new", metav1.DeleteOptions{})).To(Succeed())
	g.Expect(next()).To(Equal("capd/new"))

	later := cluster.Resource(namespaces.Secrets).Namespace("later").(metadatafake.MetadataClient)
	_, err = later.CreateFake(object("Secret", "later", "first"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	watches.Follow("docker", "capd", "later")
	g.Expect(watches.Await(t.Context(), "later")).To(BeTrue())

	_, err = later.CreateFake(object("Secret", "later", "second"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next()).To(Equal("later/second"), "a namespace that is watched later, after its first list")
}

func TestAwait(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t)
	watches := start(t, cluster, "capd", "capa", "refused")
	cluster.PrependReactor("list", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetNamespace() == "refused", nil, apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	})

	g.Expect(watches.Unwatched("capd", "other")).To(ConsistOf("capd"), "others are never watched")
	g.Expect(watches.Await(t.Context(), "other")).To(BeTrue(), "in vain")

	awaited := make(chan bool)
	go func() { awaited <- watches.Await(t.Context(), "capd") }()

	watches.Follow("docker", "capd", "refused")
	g.Eventually(awaited).Should(Receive(BeTrue()), "also of one that is asked for meanwhile")
	g.Expect(watches.Unwatched("capd", "other")).To(BeEmpty())

	g.Expect(watches.Await(t.Context(), "refused")).To(BeFalse())

	again := time.Now()

	g.Expect(watches.Await(t.Context(), "refused")).To(BeFalse())
	g.Expect(time.Since(again)).To(BeNumerically("<", time.Second), "it was awaited long enough")
}
