package reconcile

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestClaims(t *testing.T) {
	resource := func(uid, namespace, name string) *v1alpha2.InfrastructureProvider {
		p := &v1alpha2.InfrastructureProvider{}
		p.SetUID(types.UID(uid))
		p.SetNamespace(namespace)
		p.SetName(name)

		return p
	}
	remote := resource("e", "b", "aws")
	remote.Spec.KubeConfig = &v1alpha2.KubeConfig{}

	g := NewWithT(t)
	claims := &claims{}
	first, second := resource("a", "a", "aws"), resource("b", "b", "aws")

	g.Expect(claims.take(first)).To(BeTrue())
	g.Expect(claims.take(first)).To(BeTrue(), "it has the claim already")
	g.Expect(claims.take(second)).To(BeFalse(), "the first one installs the provider")
	g.Expect(claims.take(resource("c", "a", "azure"))).To(BeTrue(), "another provider")
	g.Expect(claims.take(&v1alpha2.BootstrapProvider{ObjectMeta: second.ObjectMeta})).To(BeTrue(), "another kind")
	g.Expect(claims.take(remote)).To(BeTrue(), "another cluster")

	claims.release(second)
	g.Expect(claims.take(second)).To(BeFalse(), "a claim is released by its holder only")

	claims.release(first)
	g.Expect(claims.take(second)).To(BeTrue())
}
