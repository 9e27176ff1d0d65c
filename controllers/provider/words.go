package provider

import (
	"cmp"
	"fmt"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
)

// running describes what runs. What care has a problem with is not called healthy, whatever its objects are.
func (r *run) running(care Result) string {
	version := r.installed.version()

	switch revision := r.installed.Newest; {
	case !r.installed.observed:
		return lastKnown(*r.provider.GetStatus())
	case r.installed.Record == nil:
		return ""
	case revision.Status.Pending():
		return fmt.Sprintf("%s is %s as revision %d", version, revision.Status, revision.Number)
	case revision.Status == v1alpha2.RevisionFailed && revision.RollbackTo != 0:
		return fmt.Sprintf("the rollback to %s failed", version)
	case revision.Status == v1alpha2.RevisionFailed:
		return version + " failed"
	case revision.Status != v1alpha2.RevisionDeployed:
		return fmt.Sprintf("%s is %s", version, revision.Status)
	case r.installed.health == nil, r.installed.runs() && care.Ends():
		return version + " is installed"
	case r.installed.runs():
		return version + " runs"
	case revision.Staged() && revision.RollbackTo != 0:
		return "rolling back to " + version
	}

	return version + " is not healthy"
}

// lastKnown describes what the status shows as installed; empty for nothing.
func lastKnown(status v1alpha2.ProviderStatus) string {
	if len(status.History) == 0 {
		return ""
	}

	newest := status.History[0]

	version := cmp.Or(newest.Version, "the provider")
	if newest.Status == v1alpha2.RevisionDeployed {
		return version + " is installed"
	}

	return fmt.Sprintf("%s is %s as revision %d", version, newest.Status, newest.Number)
}

// askedVersion returns the version that the resource asks for, which is a range until one is chosen from it.
func (r *run) askedVersion() string {
	asked := r.provider.GetSpec().Version
	return cmp.Or(ranges.Exact(asked, r.provider.GetStatus().DesiredVersion), asked)
}

// wantedVersion returns the version that a change is to, or else the one that the resource asks for.
func (r *run) wantedVersion() string { return cmp.Or(r.change.goal.version, r.askedVersion()) }

// wanted names what the resource asks for, of which another part than the version may have changed.
func (r *run) wanted() string {
	version := r.wantedVersion()

	switch {
	case r.rollbackTo() != 0:
		return fmt.Sprintf("the rollback to revision %d", r.rollbackTo())
	case version == "", ranges.IsSame(version, r.installed.version()):
		return "a change"
	}

	return version
}

// differs says which version the spec asks for if another one is installed; empty if it is that.
func (r *run) differs() string {
	if r.asksFor(r.installed.version()) {
		return ""
	}

	return r.askedVersion() + " is wanted"
}

// remedy names the command that makes the operator do what the resource asks for.
func (r *run) remedy(aim string) string {
	return fmt.Sprintf("%s, run `capstan reconcile %s`", aim, v1alpha2.Label(r.provider))
}

// keep names the command that makes the installed version the one that the resource asks for.
func (r *run) keep() string {
	return fmt.Sprintf("to stay with %s, run `capstan rollback %s --keep`", r.installed.version(),
		v1alpha2.Label(r.provider))
}
