package clusters

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/controllers/crds"
)

func TestDefinitionsOfARemoteClusterAreStripped(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(crds.AddToScheme(scheme)).To(Succeed())

	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "as.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{},
		}}},
	}
	reader := stripped{fake.NewClientBuilder().WithScheme(scheme).WithObjects(definition).Build()}
	withoutSchema := ConsistOf(And(HaveField("Name", "v1"), HaveField("Schema", BeNil())))

	found := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(reader.Get(t.Context(), client.ObjectKeyFromObject(definition), found)).To(Succeed())
	g.Expect(found.Spec.Versions).To(withoutSchema)

	list := &apiextensionsv1.CustomResourceDefinitionList{}
	g.Expect(reader.List(t.Context(), list)).To(Succeed())
	g.Expect(list.Items).To(ConsistOf(HaveField("Spec.Versions", withoutSchema)))
}
