package crds

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

func TestConcerned(t *testing.T) {
	g := NewWithT(t)
	m := newMemory()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name:   "samples.example.com",
		Labels: map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-owner"},
	}}
	crd.Spec.Group, crd.Spec.Names.Kind = "example.com", "Sample"

	files := []chart.File{{Name: "crds/samples.example.com.yaml"}, {Name: "crds/others.example.com.yaml"}}

	g.Expect(m.concerned(crd)).To(Equal([]string{"infrastructure-owner"}))

	m.rememberCRDs("infrastructure-other", files)
	m.rememberCRDs("infrastructure-owner", files)
	g.Expect(m.concerned(crd)).To(Equal([]string{"infrastructure-other", "infrastructure-owner"}))

	m.rememberCRDs("infrastructure-other", files[1:])
	g.Expect(m.concerned(crd)).To(Equal([]string{"infrastructure-owner"}), "the new chart does not include it")

	m.Await("core", schema.GroupKind{Group: "example.com", Kind: "Sample"}, schema.GroupKind{Group: "b", Kind: "Sample"})
	g.Expect(m.concerned(crd)).To(Equal([]string{"core", "infrastructure-owner"}))

	crd.Spec.Group = "a"
	g.Expect(m.concerned(crd)).To(Equal([]string{"infrastructure-owner"}))

	m.Await("infrastructure-owner", schema.GroupKind{})
	m.Await("core")
	g.Expect(m.awaited).To(HaveLen(1))

	m.Forget("infrastructure-other")
	m.Forget("infrastructure-owner")
	g.Expect(m.included).To(BeEmpty())
	g.Expect(m.awaited).To(BeEmpty())
}

func TestObserveDeletion(t *testing.T) {
	g := NewWithT(t)
	m := newMemory()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}

	g.Expect(m.ObserveDeletion(crd)).To(BeTrue())
	g.Expect(m.ObserveDeletion(crd)).To(BeFalse())

	crd.UID = "2"
	g.Expect(m.ObserveDeletion(crd)).To(BeTrue(), "it was created again")
}
