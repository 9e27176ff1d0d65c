package preflight_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// contracts are all that a core can have.
var contracts = []string{"v1beta1", "v1beta2"}

// stage is how far a provider is with the change to its new version.
type stage int

const (
	untouched stage = iota
	applied
	changed
	failed // and rolled back
	again  // applied once more
	broken // and cannot be rolled back, for example because of its CRDs
)

// change is the change of one provider from a version with a contract to a version with another one.
type change struct {
	before, after string
	stage         stage
}

// runs returns the contract of the managers that run.
func (c change) runs() string {
	if c.stage == untouched || c.stage == failed {
		return c.before
	}

	return c.after
}

// fleet is a change of core, and of two other providers, at the same time.
type fleet [3]change

func (f fleet) String() string { return fmt.Sprint([3]change(f)) }

// compatible reports whether core works with all that runs beside it.
func (f fleet) compatible() bool {
	supported := preflight.SupportedContracts(f[0].runs())
	return slices.Contains(supported, f[1].runs()) && slices.Contains(supported, f[2].runs())
}

// providers returns the resources as the operator writes them in the course of the changes.
func (f fleet) providers() []v1alpha2.Provider {
	all := []v1alpha2.Provider{
		provider(core, "cluster-api"), provider(infrastructure, "aws"), provider(bootstrap, "kubeadm"),
	}

	for i, p := range all {
		wants("v1.1.0", "v1.0.0")(p)
		contract(f[i].runs())(p)
		newest("v1.0.0")(p)
		ready(p)

		switch f[i].stage {
		case applied:
			notReady(v1alpha2.ProgressingReason)(p)
			newest("v1.1.0")(p)
		case again, broken:
			notReady(v1alpha2.ProgressingReason)(p)
			newest("v1.1.0")(p)
			upgradeFailed(p)
		case failed:
			notReady(v1alpha2.InstallFailedReason)(p)
			upgradeFailed(p)
		case changed:
			wants("v1.1.0", "v1.1.0")(p)
			ready(p)
			newest("v1.1.0")(p)
		}
	}

	return all
}

// resources is a cache that holds resources.
type resources []v1alpha2.Provider

func (resources) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	panic("not used")
}

func (r resources) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	var items []runtime.Object

	for _, p := range r {
		if fmt.Sprintf("%TList", p) == fmt.Sprintf("%T", list) {
			items = append(items, p)
		}
	}

	return meta.SetList(list, items)
}

// TestChangesOfAllAtOnce tries all changes of core and two other providers between versions of all contracts, in
// every order in which the operator can make them, with every failure. At no time does core run beside a
// provider that it does not work with; what fails can always be rolled back; and if nothing fails, everything
// changes. So no change needs all managers to be stopped. A contract for which that is not true needs more than
// an order.
func TestChangesOfAllAtOnce(t *testing.T) {
	var starts []fleet

	for c := range 1 << 6 {
		pick := func(bit int) string { return contracts[c>>bit&1] }
		start := fleet{
			{before: pick(0), after: pick(1)}, {before: pick(2), after: pick(3)}, {before: pick(4), after: pick(5)},
		}

		end := start
		for i := range end {
			end[i].stage = changed
		}

		if start.compatible() && end.compatible() {
			starts = append(starts, start)
		}
	}

	seen := map[fleet]bool{}
	for _, start := range starts {
		explore(t, start, seen)
	}

	t.Logf("%d changes, %d states", len(starts), len(seen))
}

// explore follows all ways from a state.
func explore(t *testing.T, f fleet, seen map[fleet]bool) {
	t.Helper()

	if seen[f] {
		return
	}

	seen[f] = true

	if !f.compatible() {
		t.Fatalf("runs what does not work together: %v", f)
	}

	stuck := true

	for i := range f {
		for _, next := range f.nextStages(t, i) {
			stuck = stuck && f[i].stage == failed
			following := f
			following[i].stage = next
			explore(t, following, seen)
		}
	}

	isFailed := func(c change) bool { return c.stage == failed || c.stage == broken }
	isUntouched := func(c change) bool { return c.stage == untouched }

	if stuck && slices.ContainsFunc(f[:], isUntouched) && !slices.ContainsFunc(f[:], isFailed) {
		t.Errorf("stuck although nothing has failed: %v", f)
	}
}

// nextStages returns the stages that one provider may get to.
func (f fleet) nextStages(t *testing.T, i int) []stage {
	t.Helper()

	all := f.providers()
	checker := &preflight.Checker{Client: resources(all)}
	mayChange := func(i int) bool {
		if f[i].before != f[i].after && checker.CoreReady(t.Context(), all[i]) != nil {
			return false
		}

		return checker.Contracts(t.Context(), all[i], f[i].after) == nil &&
			checker.Turn(t.Context(), all[i], f[i].after) == nil
	}

	switch f[i].stage {
	case untouched:
		// The operator has found out that core has to wait for others.
		if i > 0 && f[0].stage == untouched && !mayChange(0) {
			notReady(v1alpha2.CAPIVersionIncompatibilityReason)(all[0])
		}

		if mayChange(i) {
			return []stage{applied}
		}
	case failed:
		if mayChange(i) {
			return []stage{again}
		}
	case applied, again:
		if err := checker.Contracts(t.Context(), all[i], f[i].before); err != nil {
			t.Errorf("cannot be rolled back: %v: %v", f, err)
		}

		return []stage{changed, failed, broken}
	}

	return nil
}
