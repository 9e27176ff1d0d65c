package clusters_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestIdentity checks that what a remote server says about its cluster, or what a status says that it said, counts
// among the resources of a namespace only.
func TestIdentity(t *testing.T) {
	g := NewWithT(t)
	pool, _ := newPool(t, secret("first", kubeConfig(serve(t, "there"))), secret("second", kubeConfig(serve(t, "there"))),
		secret("impostor", kubeConfig(serve(t, "local"))))

	local, first, second := provider("a", "", ""), provider("b", "", "first"), provider("c", "", "second")
	impostor, recorded, elsewhere := provider("d", "", "impostor"), provider("e", "", "third"), provider("f", "", "third")

	for _, p := range []v1alpha2.Provider{local, first, second, impostor} {
		target(t, pool, p)
	}

	elsewhere.SetNamespace("team")

	moved := provider("g", "", "first")
	target(t, pool, moved)
	moved.GetStatus().Release = &v1alpha2.ReleaseStatus{ClusterUID: "former"}

	for _, p := range []v1alpha2.Provider{recorded, elsewhere} {
		p.GetStatus().Release = &v1alpha2.ReleaseStatus{ClusterUID: "there"}
	}

	g.Expect(pool.Identity(local)).To(Equal("local"))
	g.Expect(pool.Identity(impostor)).NotTo(Equal("local"))
	g.Expect(pool.Identity(first)).To(Equal("tiny/there"))
	g.Expect(pool.Identity(second)).To(Equal("tiny/there"), "whichever Secret points to it")
	g.Expect(pool.Identity(recorded)).To(Equal("tiny/there"))
	g.Expect(pool.Identity(elsewhere)).To(Equal("team/there"))
	g.Expect(pool.Identity(moved)).To(Equal("tiny/there"), "to which it has moved")
	g.Expect(pool.Identity(provider("h", "", "third"))).To(HavePrefix("tiny/"), "before it is connected")
}
