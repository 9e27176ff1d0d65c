package export

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestDefinition(t *testing.T) {
	g := NewWithT(t)
	object, err := newDefinition()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(object.GetLabels()).To(HaveKeyWithValue("clusterctl.cluster.x-k8s.io/core", "inventory"))

	d := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d)).To(Succeed())
	g.Expect(isServed(d)).To(BeFalse(), "it is not established")

	d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	g.Expect(isServed(d)).To(BeTrue())

	deleted := d.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	g.Expect(isServed(deleted)).To(BeFalse(), "it is being deleted")

	d.Spec.Versions[0].Name = "v1alpha4"
	g.Expect(isServed(d)).To(BeFalse())
}
