package usage

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// A busy machine may need more than the second that Gomega waits by default.
func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(time.Minute)
	m.Run()
}

const group = "infrastructure.cluster.x-k8s.io"

func crd(
	provider, kind, plural string,
	scope apiextensionsv1.ResourceScope,
	served ...bool,
) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:   plural + "." + group,
			Labels: map[string]string{v1alpha2.ClusterctlProviderLabel: provider},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
		},
	}
	for i, s := range served {
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: fmt.Sprintf("v%d", i+1), Served: s, Storage: i == len(served)-1,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		})
	}

	return d
}

func TestFind(t *testing.T) {
	g := NewWithT(t)
	b := bedtest.StartAPIServer(t)

	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(b.Config(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := metadata.NewForConfig(b.Config())
	g.Expect(err).NotTo(HaveOccurred())

	finder := &Finder{Client: c, Metadata: objects}

	const aws, docker = "infrastructure-aws", "infrastructure-docker"
	for _, d := range []*apiextensionsv1.CustomResourceDefinition{
		crd(aws, "AWSClusterControllerIdentity", "awsclustercontrolleridentities", apiextensionsv1.ClusterScoped, true),
		crd(aws, "AWSCluster", "awsclusters", apiextensionsv1.NamespaceScoped, true, true),
		crd(aws, "AWSHidden", "awshiddens", apiextensionsv1.NamespaceScoped, false),
		crd(docker, "DockerCluster", "dockerclusters", apiextensionsv1.NamespaceScoped, true),
	} {
		g.Expect(c.Create(t.Context(), d)).To(Succeed())
	}

	create := func(kind, namespace, name string) error {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
		o.SetNamespace(namespace)
		o.SetName(name)

		return c.Create(t.Context(), o)
	}

	for _, o := range [][3]string{
		{"AWSCluster", "default", "b"},
		{"AWSCluster", "default", "own"},
		{"AWSClusterControllerIdentity", "", "default"},
		{"DockerCluster", "default", "0-own"},
	} {
		g.Eventually(func() error { return create(o[0], o[1], o[2]) }).WithTimeout(2 * time.Minute).Should(Succeed())
	}

	find := func(q Query) []Kind {
		t.Helper()
		found, err := finder.Find(t.Context(), q)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		return found
	}
	named := func(kind, namespace, name string) object.Key {
		return object.Key{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v7", Kind: kind},
			Namespace:        namespace,
			Name:             name,
		}
	}
	hidden := Kind{
		Name:    "awshiddens." + group,
		Problem: "none of its versions is served; serve one, or delete the CustomResourceDefinition",
	}

	t.Run(
		"objects of the provider do not count, in any version, nor what its manager creates",
		func(t *testing.T) {
			NewWithT(t).Expect(find(Query{Provider: aws, Ignored: []object.Key{named("AWSCluster", "default", "own")}})).
				To(Equal([]Kind{
					{Name: "awsclusters." + group, Count: 1, Examples: []string{"default/b"}}, hidden,
				}))
		},
	)
	t.Run("other objects of the same kind count", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(create("AWSClusterControllerIdentity", "", "mine")).To(Succeed())
		g.Expect(find(Query{Provider: aws})).
			To(ContainElement(Kind{Name: "awsclustercontrolleridentities." + group, Count: 1, Examples: []string{"mine"}}))
	})
	t.Run("a namespace has objects of all providers, of namespaced kinds only", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(find(Query{Namespace: "kube-system"})).To(Equal([]Kind{hidden}))
		g.Expect(find(Query{Namespace: "default"})).To(HaveLen(3))
	})
	t.Run("objects of additional types count, unless another provider defines them", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(find(Query{Provider: aws, Types: []v1alpha2.ManagedType{{Group: "*.cluster.x-k8s.io"}}})).To(
			Equal(find(Query{Provider: aws})))

		d := crd(aws, "AWSExtra", "awsextras", apiextensionsv1.NamespaceScoped, true)
		d.Labels = nil
		g.Expect(c.Create(t.Context(), d)).To(Succeed())
		g.Eventually(func() error {
			return create("AWSExtra", "default", "a")
		}).WithTimeout(2 * time.Minute).Should(Succeed())

		extra := Kind{Name: d.Name, Count: 1, Examples: []string{"default/a"}}
		g.Expect(find(Query{Provider: aws})).NotTo(ContainElement(extra))
		g.Expect(find(Query{Provider: aws, Types: []v1alpha2.ManagedType{{Group: "*.x-k8s.io"}}})).To(ContainElement(extra))
	})
	t.Run("a CRD that a manager has created with the provider's label is not the provider's own", func(t *testing.T) {
		g := NewWithT(t)

		const azure = "infrastructure-azure"

		own := crd(azure, "AzureCluster", "azureclusters", apiextensionsv1.NamespaceScoped, true)
		own.Annotations = map[string]string{v1alpha2.Prefix + "/crd-digest": "0"}
		created := crd(azure, "AzureDisk", "azuredisks", apiextensionsv1.NamespaceScoped, true)

		for _, d := range []*apiextensionsv1.CustomResourceDefinition{own, created} {
			g.Expect(c.Create(t.Context(), d)).To(Succeed())
			g.Eventually(func() error {
				return create(d.Spec.Names.Kind, "default", "a")
			}).WithTimeout(2 * time.Minute).Should(Succeed())
		}

		names := func(q Query) []string {
			var all []string
			for _, k := range find(q) {
				all = append(all, k.Name)
			}

			return all
		}
		g.Expect(names(Query{Provider: azure})).To(Equal([]string{own.Name}))
		g.Expect(names(Query{Provider: azure, Types: []v1alpha2.ManagedType{{Group: group, Kind: "AzureDisk"}}})).To(
			ConsistOf(own.Name, created.Name))
		g.Expect(names(Query{Provider: azure, CRDs: &v1alpha2.CRDsSpec{Unmanaged: []string{created.Name}}})).To(
			ConsistOf(own.Name, created.Name))
	})
	t.Run("many objects are counted but not read, and own objects do not hide them", func(t *testing.T) {
		g := NewWithT(t)

		var group errgroup.Group
		group.SetLimit(16)

		own := []object.Key{named("DockerCluster", "default", "0-own")}

		for i := range 2*pageSize + 50 {
			name := fmt.Sprintf("c-%03d", i)
			if i < pageSize { // all of the first page
				own = append(own, named("DockerCluster", "default", name))
			}

			group.Go(func() error { return create("DockerCluster", "default", name) })
		}

		g.Expect(group.Wait()).To(Succeed())

		found := find(Query{Provider: docker, Ignored: own})
		g.Expect(found).To(HaveLen(1))
		g.Expect(found[0].Count).To(BeEquivalentTo(pageSize + 50))
		g.Expect(found[0].Examples).To(Equal([]string{
			fmt.Sprintf("default/c-%03d", pageSize), fmt.Sprintf("default/c-%03d", pageSize+1),
		}))
		g.Expect(find(Query{Provider: docker})[0].Count).To(BeEquivalentTo(2*pageSize + 51))
	})
	t.Run("a kind that no longer exists is not in use", func(t *testing.T) {
		g := NewWithT(t)
		known := &apiextensionsv1.CustomResourceDefinitionList{
			Items: []apiextensionsv1.CustomResourceDefinition{*crd("x", "Gone", "gones", apiextensionsv1.NamespaceScoped, true)},
		}
		found, err := (&Finder{Client: stale{c, known}, Metadata: objects}).Find(t.Context(), Query{Provider: "x"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Unused()).To(BeTrue())
	})
}

// stale is a cache that still has a CRD that no longer exists.
type stale struct {
	client.Reader
	known *apiextensionsv1.CustomResourceDefinitionList
}

func (s stale) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	s.known.DeepCopyInto(list.(*apiextensionsv1.CustomResourceDefinitionList))
	return nil
}
