package decide

import "github.com/capstan-project/capstan/controllers/reconcile/report"

// The actions of a removal, in the order of its rules.
const (
	// AwaitOthers waits until other programs have removed their finalizers.
	AwaitOthers Action = "AwaitOthers"
	// FindKubeConfig finds out whether the Secret with the kubeconfig is gone: it finds Removing.KubeConfigGone.
	FindKubeConfig Action = "FindKubeConfig"
	// FindNamespace finds out whether the namespace of the resource is being deleted: it finds Removing.NamespaceGone.
	FindNamespace Action = "FindNamespace"
	// ReportLeft reports what stays in a cluster that cannot be reached.
	ReportLeft Action = "ReportLeft"
	// KeepInstalled leaves what is installed without its release.
	KeepInstalled Action = "KeepInstalled"
	// FindInstalled finds out what is installed.
	FindInstalled Action = "FindInstalled"
	// CheckOthers checks that no other provider needs core.
	CheckOthers Action = "CheckOthers"
	// CheckUse checks that no object needs the provider.
	CheckUse Action = "CheckUse"
	// CheckNamespace checks that the namespace has nothing else.
	CheckNamespace Action = "CheckNamespace"
	// Uninstall uninstalls the release.
	Uninstall Action = "Uninstall"
	// DeleteCRDs deletes the CRDs.
	DeleteCRDs Action = "DeleteCRDs"
	// DeleteNamespace deletes the namespace.
	DeleteNamespace Action = "DeleteNamespace"
	// DropFinalizer removes the finalizer.
	DropFinalizer Action = "DropFinalizer"
)

// Removing is what the removal of a deleted resource depends on.
type Removing struct {
	Answers Answers
	// Finalizer is set if the resource has the operator's.
	Finalizer bool
	// Keep, InUse, CRDs and Namespace are set if annotations ask to leave the provider as it is, to remove it while it is
	// in use, and to delete its CRDs and its namespace.
	Keep, InUse, CRDs, Namespace bool
	Core                         bool
	// Remote is set if the provider is installed in another cluster, and Unreached is why that cannot be used; zero if it
	// can.
	Remote    bool
	Unreached report.Result
	// Recorded is set if the status says that something was installed. Expired is set if it does not, and the cluster
	// was tried for long enough.
	Recorded, Expired             bool
	KubeConfigGone, NamespaceGone bool
	Found                         Found
}

// Found is what is installed; zero before it was looked for.
type Found struct {
	// Known is set if that could be found out.
	Known bool
	// Installed is set if there are objects to remove, Release if a release has to be uninstalled, and Foreign if it
	// belongs to something else.
	Installed, Release, Foreign bool
	// Terminating is set if the namespace is being deleted with all that it has.
	Terminating bool
}

// removeRules are the rules of a removal. The first one that decides counts.
var removeRules = []rule[Removing]{
	{"finalizers of other programs are theirs", awaitOthers},
	{"a cluster may be gone with its kubeconfig", ask(FindKubeConfig, Removing.unreached)},
	{"a kubeconfig may go with its namespace", ask(FindNamespace, Removing.asksForNamespace)},
	{"a cluster that cannot be reached is awaited", awaitCluster},
	{"what stays in a cluster that is gone is reported", ask(ReportLeft, Removing.leaves)},
	{"what is installed stays if that is asked for", unlessExpired(ask(KeepInstalled, Removing.keeps))},
	{"what is installed is looked for", unlessExpired(ask(FindInstalled, Removing.removes))},
	{"core is removed last", ask(CheckOthers, Removing.isCore)},
	{"a provider in use stays", ask(CheckUse, Removing.mayBeInUse)},
	{"a namespace in use stays", ask(CheckNamespace, Removing.deletesNamespace)},
	{"the release is uninstalled", ask(Uninstall, Removing.uninstalls)},
	{"CRDs are deleted if that is asked for", ask(DeleteCRDs, Removing.deletesCRDs)},
	{"the namespace is deleted if that is asked for", ask(DeleteNamespace, Removing.deletesNamespace)},
	{"the resource is let go", letGo},
}

// Remove returns the next step of the removal of a deleted resource.
func Remove(r Removing) Step {
	step, _ := first(removeRules, r) // the last one always decides
	return step
}

func (r Removing) answers() Answers { return r.Answers }

// awaitOthers does nothing for a resource that has not our finalizer.
func awaitOthers(r Removing) (Step, bool) {
	if answer, answered := r.Answers[AwaitOthers]; answered {
		return Step{Action: End, Result: answer}, true
	}

	return Step{Action: AwaitOthers}, !r.Finalizer
}

func (r Removing) unreached() bool { return r.Unreached.Ends() }

// asksForNamespace reports whether it matters that the namespace is being deleted: the kubeconfig of a provider that is
// installed may have gone with it, but otherwise a user may create it again.
func (r Removing) asksForNamespace() bool { return r.unreached() && r.Recorded && r.KubeConfigGone }

func awaitCluster(r Removing) (Step, bool) {
	lost := r.KubeConfigGone && (!r.Recorded || r.NamespaceGone)
	return Step{Action: End, Result: r.Unreached}, r.unreached() && !lost && !r.Expired
}

func (r Removing) leaves() bool { return r.unreached() && r.Recorded }

func (r Removing) keeps() bool { return !r.unreached() && r.Keep }

func (r Removing) removes() bool { return !r.unreached() && !r.Keep }

// abandons reports whether the resource is let go although it is not known what is installed.
func (r Removing) abandons() bool {
	return r.unreached() || r.Remote && r.Expired && !r.Found.Known
}

// unlessExpired lets a resource go that has installed nothing, as far as is known, when its cluster cannot be read.
func unlessExpired(decide func(Removing) (Step, bool)) func(Removing) (Step, bool) {
	return func(r Removing) (Step, bool) {
		step, decides := decide(r)
		return step, decides && (step.Action != End || !r.abandons())
	}
}

// letGo ends a removal with what is left for others to do.
func letGo(r Removing) (Step, bool) {
	if answer, answered := r.Answers[DropFinalizer]; answered {
		return Step{Action: End, Result: answer}, true
	}

	return Step{Action: DropFinalizer}, true
}

func (r Removing) isCore() bool { return r.removes() && r.Core && r.Found.Installed }

// mayBeInUse reports whether something could be lost: without a release there is nothing, and when the whole namespace
// goes nothing can be kept.
func (r Removing) mayBeInUse() bool {
	return r.removes() && r.Found.Installed && !r.Found.Terminating && !r.InUse
}

func (r Removing) deletesNamespace() bool {
	return r.removes() && r.Found.Known && r.Namespace && !r.Found.Terminating
}

func (r Removing) uninstalls() bool { return r.removes() && r.Found.Known && r.Found.Release }

// deletesCRDs: they belong to the owner of the release.
func (r Removing) deletesCRDs() bool {
	return r.removes() && r.Found.Known && r.CRDs && !r.Found.Foreign
}
