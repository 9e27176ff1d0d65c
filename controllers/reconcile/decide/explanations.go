package decide

import (
	"cmp"
	"fmt"
	"time"
)

// explanation is what users read about a row.
type explanation struct {
	// facts are keys of beginFacts, careFacts, upgradeFacts, changeFacts or removeFacts: those that the row depends on.
	facts []string
	// action is the question that the row asks, and asks what its answer is read from.
	action Action
	asks   []origin
	// ends says who or what ends the wait of a row that ends its list.
	ends string
}

// origin is what inputs are read from.
type origin string

// Evidence is what only the operator, its users by the spec, and its own API server can have written.
const (
	fromSpec      origin = "the spec of the resource"
	fromMetadata  origin = "the metadata of the resource"
	fromStatus    origin = "the status of the resource"
	fromObjects   origin = "the objects in the cluster"
	fromCRDs      origin = "the CRDs in the cluster"
	fromServer    origin = "answers of the API server"
	fromReconcile origin = "this reconcile"
)

// Claims are all else. Helm's records are claims until their revision is confirmed.
const (
	fromRecords     origin = "Helm's records"
	fromAnnotations origin = "annotations of the resource"
	fromFinalizers  origin = "finalizers of other programs"
	fromProviders   origin = "other provider resources"
	fromSource      origin = "the provider's source, or its stored chart"
	fromKubeConfig  origin = "the cluster of spec.kubeConfig"
)

var claims = []origin{fromAnnotations, fromFinalizers, fromProviders, fromSource, fromKubeConfig}

const (
	byUser    = "A user, who has to change what the message names."
	byWatch   = "The operator, which looks again when one of these objects changes."
	byRetry   = "The operator, which tries again by itself."
	byProgram = "The program that works on the release, or the hook, when it ends."
	byMigrate = "The operator, which rewrites some objects at a time."
	byWrites  = "The operator, which tries again by itself; or a user, if the message asks for a change."
)

// beginFacts are what the rows with which a reconcile begins depend on.
var beginFacts = map[string]fact[Beginning]{
	"included": {
		"the operator reconciles the resource", fromMetadata,
		func(b Beginning) string { return yesNo(b.Included) },
	},
	"deleted": {
		"the resource is being deleted", fromMetadata,
		func(b Beginning) string { return yesNo(b.Deleted) },
	},
	"suspended": {
		"spec.suspend", fromSpec,
		func(b Beginning) string { return yesNo(b.Suspended) },
	},
	"finalizer": {
		"the resource has the operator's finalizer", fromMetadata,
		func(b Beginning) string { return yesNo(b.Finalizer) },
	},
	"other": {
		"the resource has the finalizer of cluster-api-operator", fromFinalizers,
		func(b Beginning) string { return yesNo(b.OtherFinalizer) },
	},
	"back": {
		"the resource was taken over, and an annotation asks to give it back", fromAnnotations,
		func(b Beginning) string { return yesNo(b.TakenOver && b.BackAsked) },
	},
	"readable": {
		"the newest revision was read", fromRecords,
		func(b Beginning) string { return yesNo(b.Readable) },
	},
}

// careFacts are what the rows of care depend on.
var careFacts = map[string]fact[Installed]{
	"revision": {
		"newest revision", fromRecords,
		func(in Installed) string { return describeRevision(in.newest()) },
	},
	"state": {
		"state of the release", fromRecords,
		func(in Installed) string { return join(string(in.Observed.State), in.Observed.Message) },
	},
	"health": {
		"health of the objects", fromObjects,
		func(in Installed) string { return describeHealth(in.Health) },
	},
	"waiting": {
		"steps that are left of a staged revision", fromRecords,
		func(in Installed) string { return describeWaiting(in.Waiting) },
	},
	"drift": {
		"objects are compared with a deployed revision (spec.release.drift)", fromSpec,
		func(in Installed) string { return yesNo(in.Drift) },
	},
	"lost": {
		"an object is missing that existed when they were compared", fromObjects,
		func(in Installed) string { return yesNo(in.Lost) },
	},
	"timeout": {
		"spec.release.timeout", fromSpec,
		func(in Installed) string { return in.Policy.Timeout.String() },
	},
	"age": {
		"age of the revision", fromRecords,
		func(in Installed) string {
			if in.newest().Changed.IsZero() {
				return "not known"
			}

			return in.Policy.Now.Sub(in.newest().Changed).Round(time.Second).String()
		},
	},
	"changed": {
		"the spec has changed since the last report", fromStatus,
		func(in Installed) string { return yesNo(in.Policy.SpecChanged) },
	},
	"requested": {
		"an annotation asks for a reconcile", fromAnnotations,
		func(in Installed) string { return yesNo(in.Policy.Requested) },
	},
	"rollback": {
		"failed revisions are rolled back (spec.release.onFailure)", fromSpec,
		func(in Installed) string { return yesNo(in.Policy.Rollback) },
	},
	"refused": {
		"revisions that the provider cannot return to", fromReconcile,
		func(in Installed) string { return fmt.Sprint(len(in.Policy.Refused)) },
	},
}

// changeFacts are what the rows of a change depend on.
var changeFacts = map[string]fact[Changing]{
	"returns": {
		"spec.release.rollbackTo asks for a revision", fromSpec,
		func(c Changing) string { return yesNo(c.Returns) },
	},
	"changed": {
		"the spec has changed since the last report", fromStatus,
		func(c Changing) string { return yesNo(c.SpecChanged) },
	},
	"first": {
		"the status knows of no installation", fromStatus,
		func(c Changing) string { return yesNo(c.First) },
	},
	"account": {
		"the provider is installed with the permissions of an account", fromSpec,
		func(c Changing) string { return yesNo(c.Account) },
	},
	"core": {
		"the provider is core", fromMetadata,
		func(c Changing) string { return yesNo(c.Core) },
	},
	"observed": {
		"the release was read", fromRecords,
		func(c Changing) string { return yesNo(c.Observed) },
	},
	"foreign": {
		"why the release belongs to something else", fromRecords,
		func(c Changing) string { return describeProblem(c.Foreign) },
	},
	"unreadable": {
		"why the release must not be read", fromServer,
		func(c Changing) string { return describeProblem(c.Unreadable) },
	},
	"installed": {
		"what is installed", fromRecords,
		func(c Changing) string { return describeContent(c.Installed) },
	},
	"planned": {
		"what the resource asks for", fromSource,
		func(c Changing) string { return describeContent(c.Planned) },
	},
	"selected": {
		"version that was selected for an automatic upgrade", fromSource,
		func(c Changing) string { return cmp.Or(c.Selected, "none") },
	},
	"found": {
		"version that was found for what the resource asks for", fromSource,
		func(c Changing) string { return cmp.Or(c.Found, "none") },
	},
	"unpinned": {
		"spec.version is empty", fromSpec,
		func(c Changing) string { return yesNo(c.Unpinned) },
	},
	"owns": {
		"the operator has written spec.version", fromMetadata,
		func(c Changing) string { return yesNo(c.OwnsVersion) },
	},
	"starts": {
		"an automatic upgrade starts", fromReconcile,
		func(c Changing) string { return yesNo(c.Starts) },
	},
	"problem": {
		"why inputs could not be used", fromSource,
		func(c Changing) string { return describeProblem(c.Problem) },
	},
	"state": {
		"state of the release", fromRecords,
		func(c Changing) string { return join(string(c.Release.State.State), c.Release.State.Message) },
	},
	"action": {
		"what follows from the state", fromReconcile,
		func(c Changing) string { return join(string(c.Release.Decision.Action), "") },
	},
	"handled": {
		"the newest revision fulfills a request that it does not record yet", fromRecords,
		func(c Changing) string { return yesNo(c.Release.Handled) },
	},
	"pinned": {
		"the revision stays although another one would be created now", fromRecords,
		func(c Changing) string { return yesNo(c.Release.Pinned) },
	},
	"arrived": {
		"time since the change was seen first", fromReconcile,
		func(c Changing) string { return c.Now.Sub(c.Arrived).Round(time.Millisecond).String() },
	},
	"crds": {
		"CRDs that change", fromCRDs,
		func(c Changing) string { return describeCRDs(c.CRDs) },
	},
	"later": {
		"core is not ready, and only the CRDs may be applied", fromProviders,
		func(c Changing) string { return yesNo(c.CoreLater) },
	},
}

// upgradeFacts are what the rows of automatic upgrades depend on.
var upgradeFacts = map[string]fact[Upgrading]{
	"allowed": {
		"spec.upgradePolicy allows automatic upgrades", fromSpec,
		func(u Upgrading) string { return yesNo(u.Allowed) },
	},
	"invalid": {
		"why spec.upgradePolicy cannot be used", fromSpec,
		func(u Upgrading) string { return describeProblem(u.Invalid) },
	},
	"range": {"spec.version", fromSpec, func(u Upgrading) string { return cmp.Or(u.Range, "empty") }},
	"next": {
		"newest version that may follow the installed one", fromSource,
		func(u Upgrading) string { return cmp.Or(u.best(), "none") },
	},
	"settled": {
		"what the resource asks for is installed, and was healthy", fromRecords,
		func(u Upgrading) string { return yesNo(u.past().settled) },
	},
	"obstacle": {
		"why the provider must not be upgraded now", fromObjects,
		func(u Upgrading) string { return cmp.Or(u.Obstacle, "nothing") },
	},
	"window": {
		"next time when upgrades may start (spec.upgradePolicy.window)", fromSpec,
		func(u Upgrading) string {
			if u.Opening.Includes(u.Now) {
				return "now"
			}

			return format(u.Opening.From)
		},
	},
	"looking": {
		"the source is being asked", fromReconcile,
		func(u Upgrading) string { return yesNo(u.Looking) },
	},
	"prevented": {
		"why a check prevents the version", fromReconcile,
		func(u Upgrading) string { return cmp.Or(u.Prevented.Message, "nothing") },
	},
	"others": {
		"automatic upgrades of other providers of the cluster", fromProviders,
		func(u Upgrading) string { return fmt.Sprint(len(u.Others)) },
	},
	"core": {
		"version that core is upgraded to next", fromProviders,
		func(u Upgrading) string { return cmp.Or(u.Core.next(), "none") },
	},
	"patience": {
		"spec.upgradePolicy.soakTime and spec.release.timeout", fromSpec,
		func(u Upgrading) string { return fmt.Sprintf("%s, %s", u.Soak, u.Timeout) },
	},
}

// removeFacts are what the rows of a removal depend on.
var removeFacts = map[string]fact[Removing]{
	"finalizer": {
		"the resource has the operator's finalizer", fromMetadata,
		func(r Removing) string { return yesNo(r.Finalizer) },
	},
	"unreached": {
		"why the cluster cannot be used", fromKubeConfig,
		func(r Removing) string { return describeProblem(r.Unreached) },
	},
	"recorded": {
		"the status says that something was installed", fromStatus,
		func(r Removing) string { return yesNo(r.Recorded) },
	},
	"kubeconfig": {
		"the Secret with the kubeconfig is gone", fromServer,
		func(r Removing) string { return yesNo(r.KubeConfigGone) },
	},
	"namespace": {
		"the namespace of the resource is being deleted", fromServer,
		func(r Removing) string { return yesNo(r.NamespaceGone) },
	},
	"expired": {
		"the cluster was tried for long enough", fromStatus,
		func(r Removing) string { return yesNo(r.Expired) },
	},
	"asked": {
		"annotations ask to keep the provider, to remove it in use, its CRDs, its namespace", fromAnnotations,
		func(r Removing) string {
			return fmt.Sprintf("%s, %s, %s, %s", yesNo(r.Keep), yesNo(r.InUse), yesNo(r.CRDs), yesNo(r.Namespace))
		},
	},
	"core": {
		"the provider is core", fromMetadata,
		func(r Removing) string { return yesNo(r.Core) },
	},
	"found": {
		"there are objects to remove", fromRecords,
		func(r Removing) string { return yesNo(r.Found.Known && r.Found.Installed) },
	},
	"terminating": {
		"the namespace is being deleted with all that it has", fromServer,
		func(r Removing) string { return yesNo(r.Found.Terminating) },
	},
}

// The rows that explain what is reported without ending their list.
const (
	healthRow  = "health is checked"
	compareRow = "the release is compared with the plan"
)

// explanations are those of all rows, by name.
var explanations = map[string]explanation{
	"resources of other operators are left alone": {
		facts: []string{"included", "other", "back"}, ends: byUser,
	},
	"cluster-api-operator stops before its resource is taken over": {
		facts: []string{"other", "suspended", "deleted"}, action: CheckStopped, asks: []origin{fromObjects},
		ends: "A user, who stops cluster-api-operator.",
	},
	"a resource is taken over with its finalizer": {
		facts: []string{"other"}, action: TakeOver, asks: []origin{fromServer}, ends: byWrites,
	},
	"a finalizer comes before an installation": {
		facts: []string{"finalizer", "suspended", "deleted"}, action: AddFinalizer, asks: []origin{fromServer},
		ends: byWrites,
	},
	"the deletion of a suspended resource waits": {
		facts: []string{"deleted", "suspended"}, ends: "A user, who sets spec.suspend to false.",
	},
	"a deleted resource is removed, also if its cluster is gone": {facts: []string{"deleted"}},
	"the cluster is reached": {
		action: FindCluster, asks: []origin{fromKubeConfig},
		ends: "The cluster, when it answers; or a user, who corrects spec.kubeConfig.",
	},
	"a suspended provider is observed": {
		facts: []string{"suspended"}, action: Observe, asks: []origin{fromRecords}, ends: byRetry,
	},
	"another resource may have installed a suspended provider": {
		facts: []string{"suspended"}, action: Identify, asks: []origin{fromProviders, fromRecords}, ends: byUser,
	},
	"health of a suspended provider is checked": {
		facts: []string{"suspended", "readable"}, action: CheckHealth, asks: []origin{fromObjects}, ends: byRetry,
	},
	"objects of a suspended provider are compared": {
		facts: []string{"suspended", "readable"}, action: Compare, asks: []origin{fromObjects}, ends: byRetry,
	},
	"CRDs of a suspended provider are compared": {
		facts: []string{"suspended", "readable"}, action: CompareCRDs, asks: []origin{fromCRDs}, ends: byRetry,
	},
	"a suspended provider is not changed": {
		facts: []string{"suspended"}, ends: "A user, who sets spec.suspend to false.",
	},
	"what is given back keeps its objects": {
		facts: []string{"back"}, action: KeepInstalled, asks: []origin{fromServer}, ends: byWrites,
	},
	"a resource is given back with its finalizer": {
		facts: []string{"back"}, action: GiveBack, asks: []origin{fromServer}, ends: byWrites,
	},

	"a revision continues with its hooks": {
		facts: []string{"revision"}, ends: "The hook, when it ends, or after five minutes.",
	},
	"what could not be deleted is deleted": {facts: []string{"revision"}},
	"drift comes before health":            {facts: []string{"drift"}},
	healthRow:                              {facts: []string{"health"}, ends: "The objects, when they become healthy."},
	"what was lost meanwhile is drift":     {facts: []string{"drift", "lost"}},
	"completed Jobs are recorded":          {facts: []string{"health"}},
	"a staged revision advances":           {facts: []string{"waiting", "health"}},
	"a healthy revision is recorded":       {facts: []string{"revision", "health"}},
	"a revision has a deadline": {
		facts: []string{"revision", "health", "waiting", "age", "timeout", "changed"},
		ends: "The objects, when they become healthy; at the deadline the revision fails, and a change of the spec comes " +
			"before that.",
	},
	"a failed revision is rolled back": {
		facts: []string{"revision", "state", "health", "rollback", "refused", "changed", "requested"},
	},

	"a cluster has each provider only once": {
		action: Identify, asks: []origin{fromProviders, fromRecords},
		ends: "The deletion of one of the resources, by a user.",
	},
	"without a policy there are no automatic upgrades": {facts: []string{"allowed"}},
	"a policy that cannot be used stops a change":      {facts: []string{"invalid"}, ends: byUser},
	"a version that a check prevents is not tried again soon": {
		facts: []string{"prevented"}, ends: byUser + " A newer version is tried as well.",
	},
	"a healthy version is followed by a newer one of its range": {facts: []string{"range", "settled", "next"}},
	"a provider that is not as it should be is not upgraded":    {facts: []string{"obstacle"}},
	"upgrades start in their window":                            {facts: []string{"window"}},
	"the source has answered":                                   {facts: []string{"looking"}},
	"other providers are looked at": {
		facts: []string{"next"}, action: ReadOthers, asks: []origin{fromProviders}, ends: byRetry,
	},
	"upgrades follow each other, that of core first": {facts: []string{"others", "core", "patience"}},

	"a range selects a version": {
		facts: []string{"returns"}, action: Select, asks: []origin{fromSource}, ends: byUser,
	},
	"what the resource asks for is planned": {
		facts: []string{"returns"}, action: Plan, asks: []origin{fromSource}, ends: byRetry,
	},
	"an empty version becomes the one that was found": {
		facts: []string{"found", "unpinned"}, action: PinVersion, asks: []origin{fromServer}, ends: byWrites,
	},
	"a version belongs to the user": {
		facts: []string{"found", "unpinned", "owns"}, action: DisownVersion, asks: []origin{fromServer}, ends: byWrites,
	},
	"without a plan nothing is changed": {
		facts: []string{"found"}, action: Plan, asks: []origin{fromSpec, fromObjects, fromSource},
		ends: "A user, who has to correct what the message names; or what it names, when it exists or answers.",
	},
	"an automatic upgrade is what was selected": {
		facts: []string{"starts", "selected", "found", "planned", "installed", "problem"}, ends: byUser,
	},
	"the release is read": {
		facts: []string{"observed", "unreadable"}, action: Observe, asks: []origin{fromRecords}, ends: byRetry,
	},
	"a release of another program stays": {facts: []string{"foreign"}, ends: byUser},
	compareRow: {
		facts:  []string{"state", "action", "installed", "planned", "changed"},
		action: CompareRelease, asks: []origin{fromRecords},
		ends: "The operator, which tries again.",
	},
	"a request that is fulfilled is recorded": {
		facts: []string{"handled"}, action: MarkRequest, asks: []origin{fromRecords}, ends: byRetry,
	},
	"inputs that cannot be used stop a change":           {facts: []string{"problem", "planned", "action"}, ends: byUser},
	"an action on the release, or its hooks, is awaited": {facts: []string{"state"}, ends: byProgram},
	"an uninstall by another program stays": {
		facts: []string{"state", "action"},
		ends:  "A user, who changes the resource or deletes it.",
	},
	"a revision stays until the resource asks for another one": {facts: []string{"pinned", "action", "returns"}},
	"the provider may return to the revision": {
		facts: []string{"returns", "action"}, action: CheckRevision, asks: []origin{fromRecords, fromCRDs},
		ends: byUser,
	},
	"contracts fit, and variables and kinds exist": {
		facts: []string{"action"}, action: CheckRequirements,
		asks: []origin{fromProviders, fromSpec, fromServer},
		ends: byUser + " Variables and kinds that appear end it as well.",
	},
	"core is ready before what needs it": {
		facts: []string{"action", "planned", "installed"}, action: CheckCore, asks: []origin{fromProviders},
		ends: "The core provider, when it becomes ready.",
	},
	"core that changes at the same time comes first": {
		facts: []string{"core", "changed", "installed", "planned", "arrived"},
		ends:  "The operator, after half a second.",
	},
	"providers change one after the other": {
		facts: []string{"installed", "planned", "action"}, action: CheckTurn, asks: []origin{fromProviders},
		ends: "The provider that the message names, when it has changed.",
	},
	"the account has all permissions": {
		facts: []string{"account", "action"}, action: CheckPermissions, asks: []origin{fromServer},
		ends: "A user, who grants the permissions.",
	},
	"no other program has installed the provider": {
		facts: []string{"first", "action"}, action: CheckInstalled, asks: []origin{fromObjects},
		ends: "The deletion of the other installation, by a user.",
	},
	"CRDs are compared with those of the cluster": {
		facts: []string{"returns"}, action: PlanCRDs, asks: []origin{fromCRDs}, ends: byUser,
	},
	"objects are rewritten before their version goes": {
		facts: []string{"crds"}, action: MigrateObjects, asks: []origin{fromObjects}, ends: byMigrate,
	},
	"changes of CRDs break nothing": {
		facts: []string{"crds"}, action: CheckCRDs, asks: []origin{fromCRDs}, ends: byUser,
	},
	"the API server accepts all objects": {
		facts: []string{"crds", "action", "later"}, action: DryRun, asks: []origin{fromServer}, ends: byWrites,
	},
	"a change is announced before it begins": {
		facts: []string{"first", "installed", "planned", "starts", "action", "crds", "later"}, action: Announce,
		asks: []origin{fromProviders, fromServer},
		ends: "The provider that the message names, when it has changed; or the deletion of one of the resources.",
	},
	"CRDs are applied before the release": {
		facts: []string{"crds"}, action: ApplyCRDs, asks: []origin{fromServer}, ends: byWrites,
	},
	"CRDs that were changed are corrected": {
		facts: []string{"returns"}, action: CorrectCRDs, asks: []origin{fromCRDs}, ends: byWrites,
	},
	"what needs core waits for it": {facts: []string{"later"}, ends: "The core provider, when it becomes ready."},
	"a release that cannot be read is not changed": {
		facts: []string{"unreadable"}, ends: "A user, who grants the permissions.",
	},
	"the release is applied": {
		facts: []string{"state", "action", "unreadable"}, action: Apply, asks: []origin{fromServer}, ends: byWrites,
	},
	"the CRDs are served": {
		facts: []string{"returns"}, action: AwaitCRDs, asks: []origin{fromCRDs},
		ends: "The API server, when it serves them.",
	},

	"finalizers of other programs are theirs": {
		facts: []string{"finalizer"}, action: AwaitOthers, asks: []origin{fromFinalizers},
		ends: "The programs that have set the other finalizers.",
	},
	"a cluster may be gone with its kubeconfig": {
		facts: []string{"unreached"}, action: FindKubeConfig, asks: []origin{fromServer}, ends: byRetry,
	},
	"a kubeconfig may go with its namespace": {
		facts: []string{"unreached", "recorded", "kubeconfig"}, action: FindNamespace, asks: []origin{fromServer},
		ends: byRetry,
	},
	"a cluster that cannot be reached is awaited": {
		facts: []string{"unreached", "recorded", "kubeconfig", "namespace", "expired"},
		ends:  "The cluster, when it answers; or a user, as the message says.",
	},
	"what stays in a cluster that is gone is reported": {
		facts: []string{"unreached", "recorded"}, action: ReportLeft, asks: []origin{fromReconcile}, ends: byRetry,
	},
	"what is installed stays if that is asked for": {
		facts: []string{"unreached", "asked"}, action: KeepInstalled, asks: []origin{fromServer}, ends: byWrites,
	},
	"what is installed is looked for": {
		facts: []string{"unreached", "asked"}, action: FindInstalled, asks: []origin{fromRecords, fromObjects},
		ends: byRetry,
	},
	"core is removed last": {
		facts: []string{"core", "found"}, action: CheckOthers, asks: []origin{fromProviders},
		ends: "The other providers, when they are removed.",
	},
	"a provider in use stays": {
		facts: []string{"found", "terminating", "asked"}, action: CheckUse, asks: []origin{fromObjects}, ends: byUser,
	},
	"a namespace in use stays": {
		facts: []string{"asked", "terminating"}, action: CheckNamespace, asks: []origin{fromObjects}, ends: byUser,
	},
	"the release is uninstalled": {
		facts: []string{"found"}, action: Uninstall, asks: []origin{fromServer}, ends: byWrites,
	},
	"CRDs are deleted if that is asked for": {
		facts: []string{"asked"}, action: DeleteCRDs, asks: []origin{fromServer}, ends: byWrites,
	},
	"the namespace is deleted if that is asked for": {
		facts: []string{"asked", "terminating"}, action: DeleteNamespace, asks: []origin{fromServer}, ends: byWrites,
	},
	"charts of a provider that was never installed are deleted": {
		facts: []string{"unreached", "expired"}, action: DeleteCharts, asks: []origin{fromServer}, ends: byWrites,
	},
	"the resource is let go": {action: DropFinalizer, asks: []origin{fromServer}, ends: byWrites},
}

func join(word, message string) string {
	switch {
	case word == "":
		return "not known yet"
	case message == "":
		return word
	}

	return word + ": " + message
}

func describeWaiting(w Waiting) string {
	switch {
	case !w.Staged:
		return "none"
	case w.ForManager:
		return "the next one needs the provider's own manager, which is paused"
	case w.ForDeletions:
		return "objects are being deleted"
	}

	return "objects have to be applied or deleted"
}

func describeCRDs(c CRDs) string {
	switch {
	case c.Update:
		return "some are updated"
	case c.Change:
		return "some are created"
	}

	return "none"
}
