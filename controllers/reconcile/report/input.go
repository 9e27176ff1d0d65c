package report

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Input is what one reconcile has found out and done.
type Input struct {
	Provider  Provider
	Installed Installed
	Change    Progress
	Automatic Automatic
	Source    Source
	Migration Migration
	// RemoteInterval is how often the cluster is looked at in which the provider is installed; zero for the operator's
	// own, which is watched.
	RemoteInterval time.Duration
	// Uninstalled is set once the provider of a deleted resource is uninstalled.
	Uninstalled bool
	// Now is the time of the operator's clock.
	Now time.Time
}

// Provider is the resource.
type Provider struct {
	// Label is the value of the label cluster.x-k8s.io/provider, such as infrastructure-aws.
	Label string
	// ReleaseName is the name of its Helm release.
	ReleaseName string
	Generation  int64
	// Status as it was before, with what has become known before the end of the reconcile.
	Status v1alpha2.ProviderStatus
	// Timeout is spec.release.timeout, or its default.
	Timeout time.Duration
	// Drift is what follows drift.
	Drift v1alpha2.DriftPolicy
	// Version is the version or range that the resource asks for, and RollbackTo the revision that it asks for instead;
	// zero for none.
	Version    string
	RollbackTo int
	// OperatorSuspended is set if the operator changes nothing, whatever the resource says.
	OperatorSuspended bool
}

// Installed is what was seen of the release. It is zero if the release was not looked at.
type Installed struct {
	// Observed is set if the history was read.
	Observed bool
	History  state.History
	// Revision is the newest one, and Record its content.
	Revision state.Revision
	Record   Record
	Health   Health
	// Drift is what differs from the revision.
	Drift Drift
	// Inventory are the objects that the release has, or may have.
	Inventory []object.Key
	// ClusterUID is the UID of the cluster.
	ClusterUID string
	// Identified is set if no other resource has installed the provider.
	Identified bool
	// Undeleted describes objects that the revision does not have, and that finalizers hold; empty for none.
	Undeleted string
	// Unconfirmed is why the newest revision is not known to be the resource's; empty if it is.
	Unconfirmed string
}

// Record is the content of a revision.
type Record struct {
	// Readable is set if there is one and it could be read. The other fields are empty otherwise.
	Readable bool
	// AppVersion is the version of the provider, Contract its contract with Cluster API, and Description what
	// `helm history` shows.
	AppVersion, Contract, Description string
	// OtherChart is the chart of the revision if another program has made it of one that is not the provider's; empty
	// otherwise.
	OtherChart string
	// Paused is set if the Deployments have no replicas.
	Paused bool
}

// Health is the health of the objects of the newest revision.
type Health struct {
	// Checked is set if it was read.
	Checked bool
	// Healthy is set if all objects are healthy, and Others if all are apart from those that wait for others.
	Healthy, Others bool
	// Failed is set if one will probably not become healthy by itself, and Final if one cannot, however long one waits.
	Failed, Final bool
	// Finished is set if Jobs have completed that are not recorded yet.
	Finished bool
	// Message names objects that are not healthy.
	Message string
	// Running is set if Deployments that the revision has paused have, or may have, pods.
	Running bool
	// Kept describes containers that run other images than the revision has, because users own their Deployments; empty
	// for none.
	Kept string
}

// Drift is what differs from the newest revision.
type Drift struct {
	// Compared is set if objects were compared.
	Compared bool
	// Left describes the objects that still differ.
	Left []string
	// Late describes the objects whose drift is noticed late; empty if there are none.
	Late string
}

// Progress is how far the change got to what the resource asks for.
type Progress struct {
	// Planned is set once the plan was begun.
	Planned bool
	// Flags are those that managers get although they may not have them.
	Flags []Flag
	// InputsProblem is why inputs could not be used that are not needed for what is installed; zero for none.
	InputsProblem Result
	// Goal is the version, or the revision, that the release should have, and Digest identifies that.
	Goal, Digest string
	State        state.Observed
	Decision     state.Decision
	// Pinned is set if a revision stays although another one would be created now. Pending describes why, and
	// PendingInputs is set if that is what the resource refers to, and not the operator's environment.
	Pinned        bool
	Pending       string
	PendingInputs bool
	// Passed is set if all checks passed.
	Passed bool
	// CRDsChecked describes the changes of CRDs that were checked; empty if there were none.
	CRDsChecked string
	// Failure is why an action has left a failed revision; empty for none.
	Failure string
	// Refusal is why a failed revision was not rolled back although it should have been.
	Refusal string
}

// Flag is one that the manager of a Deployment may not have.
type Flag struct{ Deployment, Warning string }

// Automatic is what is known of automatic upgrades.
type Automatic struct {
	// Last is the last one; nil for none.
	Last *v1alpha2.AutomaticUpgrade
}

// Source is what is known of the provider's source.
type Source struct {
	// Answered is set if it has listed its versions, of which Upgrades are those to upgrade to.
	Answered bool
	Upgrades []v1alpha2.AvailableUpgrade
}

// Migration is how far objects are rewritten in the storage version. It is zero if nothing is known.
type Migration struct {
	Done            bool
	Reason, Message string
}

// deployed reports whether the newest revision is deployed.
func (i Installed) deployed() bool {
	return i.Record.Readable && i.Record.OtherChart == "" && i.Revision.Status == v1alpha2.RevisionDeployed
}

// Healthy reports whether the objects of the newest revision are known to be healthy, and complete. Those of another
// chart are not the provider.
func (i Installed) Healthy() bool {
	staged := i.Revision.Staged() && i.Revision.Status == v1alpha2.RevisionDeployed
	return i.Health.Checked && i.Health.Healthy && !staged && i.Record.OtherChart == ""
}

// isGone reports whether the release was looked at and does not exist.
func (i Installed) isGone() bool { return i.Observed && len(i.History.Revisions) == 0 }

// runs reports whether the newest revision is deployed, and its objects are known to be healthy, and complete.
func (i Installed) runs() bool { return i.deployed() && i.Healthy() }

// problem describes why the newest revision does not run.
func (i Installed) problem() string {
	switch {
	case i.Record.OtherChart != "":
		return fmt.Sprintf("another program made revision %d of release %s (%s)",
			i.Revision.Number, i.History.Release.Name, i.Record.Description)
	case !i.deployed():
		return fmt.Sprintf("revision %d is %s: %s", i.Revision.Number, i.Revision.Status, i.Record.Description)
	case i.Health.Message == "":
		return fmt.Sprintf("revision %d is not complete yet: objects that waited for others are next", i.Revision.Number)
	}

	return i.Health.Message
}

// paused reports whether the newest revision runs no managers.
func (i Installed) paused() bool { return i.Revision.Paused || i.Record.Paused }

// hasInstalled reports whether a revision is deployed, as far as is known.
func (i Input) hasInstalled() bool {
	if !i.Installed.Observed {
		return find(i.Provider.Status.Conditions, v1alpha2.ProviderInstalledCondition).Status == metav1.ConditionTrue
	}

	return i.Installed.deployed()
}

// held reports whether what another program did to the release stays.
func (c Progress) held() bool { return c.Decision.Action == state.Hold }

// keeps reports whether the newest revision stays although another one would be created now.
func (c Progress) keeps() bool { return c.Pinned && c.Decision.Action != state.Apply }

// isUninstalledByOthers reports whether another program uninstalled the release, which is respected.
func (i Input) isUninstalledByOthers() bool {
	return i.Change.Decision.HoldsUninstalled(i.Installed.History)
}

// installsAgain reports whether a release that does not exist is about to be installed, as soon as nothing prevents it.
func (i Input) installsAgain() bool {
	return i.Installed.isGone() && i.Change.State.State == state.Absent && i.Change.Decision.Action == state.Apply
}
