package v1alpha2_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// kubeConfigRule begins the message of the rule about changes of spec.kubeConfig.
const kubeConfigRule = "spec.kubeConfig cannot change while the provider is installed"

func TestKubeConfigOfInstalledProvider(t *testing.T) {
	g := NewWithT(t)
	c := connect(t)
	kubeConfig := func(secret string) *v1alpha2.KubeConfig {
		return &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
			LocalSecretReference: v1alpha2.LocalSecretReference{Name: secret}, Key: "value",
		}}
	}

	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "moving"}}
	g.Expect(c.Create(t.Context(), p)).To(Succeed())

	p.Spec.KubeConfig = kubeConfig("typo")
	g.Expect(c.Update(t.Context(), p)).To(Succeed(), "nothing is installed")

	p.Spec.KubeConfig = kubeConfig("berlin")
	g.Expect(c.Update(t.Context(), p)).To(Succeed(), "nothing is installed")

	p.Status.Release = &v1alpha2.ReleaseStatus{Name: "infrastructure-moving"}
	g.Expect(c.Status().Update(t.Context(), p)).To(Succeed())

	p.Spec.Version = "v1.0.0"
	g.Expect(c.Update(t.Context(), p)).To(Succeed(), "another field")

	for _, changed := range []*v1alpha2.KubeConfig{nil, kubeConfig("paris")} {
		moved := p.DeepCopy()
		moved.Spec.KubeConfig = changed
		g.Expect(c.Update(t.Context(), moved)).To(MatchError(ContainSubstring(kubeConfigRule)))
	}

	p.Status.Release = nil
	g.Expect(c.Status().Update(t.Context(), p)).To(Succeed())

	p.Spec.KubeConfig = nil
	g.Expect(c.Update(t.Context(), p)).To(Succeed(), "it is uninstalled")
	g.Expect(c.Delete(t.Context(), p)).To(Succeed())
}
