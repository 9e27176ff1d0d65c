package decide

import "github.com/capstan-project/capstan/controllers/reconcile/report"

// The actions with which a reconcile begins, in the order of their rules. Observe, Identify, CheckHealth, Compare and
// CompareCRDs are then about a suspended provider, of which nothing is changed.
const (
	// Ignore leaves the resource alone.
	Ignore Action = "Ignore"
	// CheckStopped checks that cluster-api-operator no longer manages the resource.
	CheckStopped Action = "CheckStopped"
	// TakeOver replaces the finalizer of cluster-api-operator by the operator's.
	TakeOver Action = "TakeOver"
	// AddFinalizer adds the operator's finalizer.
	AddFinalizer Action = "AddFinalizer"
	// FindCluster finds the cluster that the provider is installed in.
	FindCluster Action = "FindCluster"
	// CompareCRDs compares the CRDs of the installed chart with those of the cluster.
	CompareCRDs Action = "CompareCRDs"
	// Show ends with what is known of a suspended provider.
	Show Action = "Show"
	// RemoveProvider continues with the rules of a removal.
	RemoveProvider Action = "RemoveProvider"
	// Maintain continues with care and change.
	Maintain Action = "Maintain"
)

// Beginning is what a reconcile begins with: the resource.
type Beginning struct {
	Answers Answers
	// Included is set if the operator reconciles the resource.
	Included bool
	// Deleted is set if the resource is being deleted, and Suspended if spec.suspend or, with ByOperator, the operator's
	// --suspend says so.
	Deleted, Suspended, ByOperator bool
	// Finalizer and OtherFinalizer are set if the resource had the operator's, and that of cluster-api-operator.
	Finalizer, OtherFinalizer bool
	// Readable is set if the newest revision of the release was read.
	Readable bool
}

// beginRules are the rules with which every reconcile begins. The first one that decides counts.
var beginRules = []rule[Beginning]{
	{"resources of other operators are left alone", ignore},
	{"cluster-api-operator stops before its resource is taken over", ask(CheckStopped, Beginning.takesOver)},
	{"a resource is taken over with its finalizer", ask(TakeOver, Beginning.takesOver)},
	{"a finalizer comes before an installation", ask(AddFinalizer, Beginning.lacksFinalizer)},
	{"the deletion of a suspended resource waits", awaitResume},
	{"a deleted resource is removed, also if its cluster is gone", removeProvider},
	{"the cluster is reached", ask(FindCluster, anyBeginning)},
	{"a suspended provider is observed", ask(Observe, Beginning.suspended)},
	{"another resource may have installed a suspended provider", look(Identify, Beginning.suspended)},
	{"health of a suspended provider is checked", ask(CheckHealth, Beginning.shows)},
	{"objects of a suspended provider are compared", ask(Compare, Beginning.shows)},
	{"CRDs of a suspended provider are compared", ask(CompareCRDs, Beginning.shows)},
	{"a suspended provider is not changed", show},
}

// Begin returns the next step with which a reconcile begins, before care, change or removal.
func Begin(b Beginning) Step {
	step, decides := first(beginRules, b)
	if !decides {
		step.Action = Maintain
	}

	return step
}

func anyBeginning(Beginning) bool { return true }

func (b Beginning) answers() Answers { return b.Answers }

// ignore leaves a resource alone that is out of scope.
func ignore(b Beginning) (Step, bool) { return Step{Action: Ignore}, !b.Included }

// owns reports whether the resource should have the operator's finalizer.
func (b Beginning) owns() bool { return !b.Deleted && !b.Suspended }

func (b Beginning) takesOver() bool { return b.owns() && b.OtherFinalizer }

func (b Beginning) lacksFinalizer() bool { return b.owns() && !b.OtherFinalizer && !b.Finalizer }

func awaitResume(b Beginning) (Step, bool) {
	return Step{Action: End, Result: report.DeletionSuspended(b.ByOperator)}, b.Deleted && b.Suspended
}

// removeProvider: whether the cluster has to be reached for a removal is for the rules of that to decide.
func removeProvider(b Beginning) (Step, bool) {
	if _, searched := b.Answers[FindCluster]; !searched {
		return Step{}, false
	}

	return Step{Action: RemoveProvider}, b.Deleted
}

func (b Beginning) suspended() bool { return b.Suspended }

func (b Beginning) shows() bool { return b.Suspended && b.Readable }

func show(b Beginning) (Step, bool) { return Step{Action: Show}, b.Suspended }
