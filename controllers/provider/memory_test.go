package provider

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/namespaces"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/plan"
)

func TestForget(t *testing.T) {
	g := NewWithT(t)
	name := types.NamespacedName{Namespace: "capa-system", Name: "aws"}
	r := &Reconciler{Type: v1alpha2.InfrastructureProviderType, Dependencies: &Dependencies{
		Clusters: &clusters.Pool{},
		Watches:  namespaces.New(nil, nil),
		Planner:  &plan.Planner{Charts: &plan.Charts{}},
		Offers:   offers.NewTracker(nil, nil),
	}}

	resource := func(uid types.UID) v1alpha2.Provider {
		p := r.Type.New()
		p.SetNamespace(name.Namespace)
		p.SetName(name.Name)
		p.SetUID(uid)

		return p
	}

	a, b := r.memoryOf(resource("a")), r.memoryOf(resource("b"))
	g.Expect(a).NotTo(BeIdenticalTo(b), "it was created again with another UID")
	g.Expect(r.memoryOf(resource("b"))).To(BeIdenticalTo(b))

	r.forgetGone(name)
	g.Expect(r.memories.byName).To(BeEmpty(), "it is gone, whatever has removed its finalizer")
	r.forgetGone(name)

	r.memoryOf(resource("c"))
	r.forget(resource("c"))
	g.Expect(r.memories.byName).To(BeEmpty())
}

func TestArrival(t *testing.T) {
	g := NewWithT(t)
	m := &memory{}
	first := time.Unix(1000, 0)

	g.Expect(m.arrival(1, first)).To(Equal(first))
	g.Expect(m.arrival(1, first.Add(time.Second))).To(Equal(first), "it is the same change")
	g.Expect(m.arrival(2, first.Add(time.Minute))).To(Equal(first.Add(time.Minute)), "it has changed again")
}
