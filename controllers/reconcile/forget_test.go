package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/autoupgrade"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release/drift"
	"github.com/capstan-project/capstan/controllers/upgrades"
)

func TestForget(t *testing.T) {
	g := NewWithT(t)
	name := types.NamespacedName{Namespace: "capa-system", Name: "aws"}
	manager := object.Key{Name: "manager"}
	r := &Reconciler{Type: v1alpha2.InfrastructureProviderType, Dependencies: &Dependencies{
		Clusters:  &clusters.Pool{},
		Planner:   &plan.Planner{Charts: &plan.Charts{}},
		Upgrades:  upgrades.NewTracker(nil, nil),
		Automatic: &autoupgrade.Selector{},
	}}

	asked := time.Now()
	learn := func(uid types.UID) {
		r.arrivals.of(&metav1.ObjectMeta{UID: uid}, asked)
		r.remember(name, uid)
		r.permitted.add(uid, "digest")
		r.corrections.Record(drift.Subject{Resource: uid, Object: manager}, time.Now(), false)
	}
	knows := func(uid types.UID) []bool {
		next := r.corrections.Next(drift.Subject{Resource: uid, Object: manager})
		arrived := r.arrivals.of(&metav1.ObjectMeta{UID: uid}, asked.Add(time.Hour)).Equal(asked)

		return []bool{r.permitted.has(uid, "digest"), !next.IsZero(), arrived}
	}

	learn("a")
	r.remember(name, "a")
	g.Expect(knows("a")).To(HaveEach(true))

	learn("b")
	g.Expect(knows("a")).To(HaveEach(false), "it was created again with another UID")
	g.Expect(knows("b")).To(HaveEach(true))

	r.forgetGone(name)
	g.Expect(knows("b")).To(HaveEach(false), "it is gone, whatever has removed its finalizer")
	r.forgetGone(name)
}
