package preflight_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

func TestClaims(t *testing.T) {
	resource := func(uid, namespace, name string) *v1alpha2.InfrastructureProvider {
		p := &v1alpha2.InfrastructureProvider{}
		p.SetUID(types.UID(uid))
		p.SetNamespace(namespace)
		p.SetName(name)

		return p
	}
	g := NewWithT(t)
	set := &preflight.Claims{}
	first, second := resource("a", "a", "aws"), resource("b", "b", "aws")

	g.Expect(set.Take("berlin", first)).To(BeTrue())
	g.Expect(set.Take("berlin", first)).To(BeTrue(), "it has the claim already")
	g.Expect(set.Take("berlin", second)).To(BeFalse(), "the first one installs the provider")
	g.Expect(set.Take("berlin", resource("c", "a", "azure"))).To(BeTrue(), "another provider")
	g.Expect(set.Take("berlin", &v1alpha2.BootstrapProvider{ObjectMeta: second.ObjectMeta})).To(BeTrue(), "of a kind")
	g.Expect(set.Take("paris", resource("d", "b", "aws"))).To(BeTrue(), "another cluster")

	set.Release("b")
	g.Expect(set.Take("berlin", second)).To(BeFalse(), "a claim is released by its holder only")

	set.Release("a")
	g.Expect(set.Take("berlin", second)).To(BeTrue())
}
