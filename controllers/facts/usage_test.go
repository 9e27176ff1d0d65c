package facts_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/usage"
)

// finder finds objects of AWSClusters, of which there are some with names.
func finder(t *testing.T, names ...string) *usage.Finder {
	t.Helper()

	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "awsclusters.example.com", Labels: map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-aws"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: "AWSCluster", Plural: "awsclusters"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
		},
	}

	scheme := runtime.NewScheme()
	NewWithT(t).Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())

	objects := runtime.NewScheme()
	NewWithT(t).Expect(metav1.AddMetaToScheme(objects)).To(Succeed())

	existing := make([]runtime.Object, 0, len(names))
	for _, name := range names {
		existing = append(existing, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "AWSCluster"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "capa-system", Name: name, Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "of-" + name},
			},
		})
	}

	return &usage.Finder{
		Client:   fake.NewClientBuilder().WithScheme(scheme).WithObjects(crd).Build(),
		Metadata: metadatafake.NewSimpleMetadataClient(objects, existing...),
	}
}

// TestUsage checks that objects which came with the provider do not keep it from being removed, and others do.
func TestUsage(t *testing.T) {
	g := NewWithT(t)
	p, reader := sample(t, interceptor.Funcs{})
	searched := []string{"awsclusters.example.com"}

	own := &unstructured.Unstructured{}
	own.SetAPIVersion("example.com/v1")
	own.SetKind("AWSCluster")
	own.SetNamespace("capa-system")
	own.SetName("own")

	releases := reader.Releases.(*memory)
	releases.records[3].Objects = append(releases.records[3].Objects, own)

	reader.Finder = finder(t)
	g.Expect(reader.Usage(t.Context(), p)).To(Equal(facts.Usage{Searched: searched}))

	reader.Finder = finder(t, "own")
	found, err := reader.Usage(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Kinds).To(BeEmpty())

	reader.Finder = finder(t, "own", "production")
	g.Expect(reader.Usage(t.Context(), p)).To(Equal(facts.Usage{Searched: searched, Kinds: []usage.Kind{{
		Name: "awsclusters.example.com", Count: 1, Examples: []string{"capa-system/production"},
		Clusters: []string{"capa-system/of-production"},
	}}}))

	delete(releases.records, 3) // it is corrupt: all objects count

	found, err = reader.Usage(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Kinds).To(HaveExactElements(HaveField("Count", BeEquivalentTo(2))))

	releases.revisions = []state.Revision{}

	g.Expect(reader.Usage(t.Context(), p)).To(Equal(facts.Usage{}), "nothing is installed")

	p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{}
	reader.Releases, reader.Finder = nil, nil
	g.Expect(reader.Usage(t.Context(), p)).To(Equal(facts.Usage{}), "it is in another cluster")
}
