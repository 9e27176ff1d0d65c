package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/values"
)

// Event is a Kubernetes event about a resource.
type Event struct {
	// Type is Normal or Warning.
	Type           string
	Reason, Action string
	Note           string
	// Related is the other object that the event is about; zero for none.
	Related object.Key
}

// Reasons of events that no condition has.
const (
	// ignoredReason is about a part of the spec that has no effect.
	ignoredReason = "Ignored"
	// unpublishedFlagReason is about a flag that a manager may not have.
	unpublishedFlagReason = "UnpublishedFlag"
)

// warn returns a warning with all messages; none if there are none. Of several events with the same reason about the
// same revision of an object, only the first one would be stored.
func warn(reason, action string, messages ...string) []Event {
	if len(messages) == 0 {
		return nil
	}

	return []Event{{
		Type: corev1.EventTypeWarning, Reason: reason, Action: action, Note: note(strings.Join(messages, "; ")),
	}}
}

func news(reason, action, message string) []Event {
	return []Event{{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: note(message)}}
}

// maxNote bounds the text of an event. The API server rejects events with a longer one.
const maxNote = 1024 - len(" …")

// note returns the text of an event.
func note(message string) string {
	return object.OneLine(object.Printable(message), maxNote)
}

// attempt is one that has failed: by its revision, and whether it was the last.
type attempt struct {
	revision int
	last     bool
}

// failedEvent returns the event about an attempt that has failed: one for each, and one if it is the last. Told is the
// attempt that such an event was about before.
func failedEvent(told, now attempt, failed Result) []Event {
	if told.revision == now.revision && (told.last || !now.last) {
		return nil
	}

	return warn(failed.Reason, "Reconcile", failed.within(maxNote))
}

// readyEvent returns the event about a change of Ready. Before and now are all conditions.
func readyEvent(before, now []metav1.Condition, result Result, stalled bool) []Event {
	if !isNews(before, now) {
		return nil
	}

	text := result.within(maxNote)
	if stalled || isFailure(result) {
		return warn(result.Reason, "Reconcile", text)
	}

	return news(result.Reason, "Reconcile", text)
}

// isFailure reports whether a result is a failure, although a user need not do anything about it yet.
func isFailure(result Result) bool {
	failures := []string{
		v1alpha2.UnhealthyReason, v1alpha2.CRDMigrationFailedReason, v1alpha2.ClusterUnreachableReason,
	}

	return result.Outcome == Retrying || slices.Contains(failures, result.Reason)
}

// isNews reports whether a change of the condition Ready is worth an event. That a resource which was not ready begins
// to progress is none: it usually is ready a moment later. Which objects are not healthy yet changes all the time.
func isNews(before, now []metav1.Condition) bool {
	former := v1alpha2.FindCondition(before, v1alpha2.ReadyCondition)
	ready := v1alpha2.FindCondition(now, v1alpha2.ReadyCondition)
	progresses := ready.Reason == v1alpha2.ProgressingReason

	switch {
	case former.Type == "":
		return !progresses
	case former.Reason != ready.Reason:
		return !progresses || former.Status == metav1.ConditionTrue
	case progresses, ready.Reason == v1alpha2.UnhealthyReason:
		return saidShort(before) != saidShort(now)
	}

	return former.Message != ready.Message
}

// saidShort returns the message of Stalled or Reconciling, which has no cause; empty if there is neither.
func saidShort(all []metav1.Condition) string {
	return cmp.Or(
		v1alpha2.FindCondition(all, v1alpha2.StalledCondition).Message,
		v1alpha2.FindCondition(all, v1alpha2.ReconcilingCondition).Message,
	)
}

// rolledBack returns the event about a rollback after a failure.
func rolledBack(version string, revision int, failed string) []Event {
	return news(v1alpha2.ProviderInstalledReason, "Rollback",
		fmt.Sprintf("Rolled back to %s as revision %d, because %s failed", version, revision, failed))
}

// leftRelease returns the event about a release in a cluster that was left.
func leftRelease(former v1alpha2.ReleaseStatus) []Event {
	return warn(v1alpha2.ReleaseKeptReason, "Reconcile", fmt.Sprintf(
		"The provider is installed into another cluster than before; release %s/%s is kept in the former one, whose "+
			"namespace kube-system has the UID %s", former.Namespace, former.Name, former.ClusterUID))
}

// takenOver returns the event about a resource that cluster-api-operator has managed before.
func takenOver() []Event {
	return news(v1alpha2.TakenOverReason, "Reconcile", "Taken over from cluster-api-operator, which has stopped")
}

// upgradeStarted returns the event about an automatic upgrade.
func upgradeStarted(description string) []Event {
	return news(v1alpha2.AutomaticUpgradeReason, "Upgrade", description)
}

// skippedMinors returns the event about an upgrade that skips minor versions, with a message; none if that is empty.
func skippedMinors(message string) []Event {
	if message == "" {
		return nil
	}

	return warn(v1alpha2.MinorVersionsSkippedReason, "Upgrade", message)
}

// maxNamed is how many objects, or fields of one, an event names.
const maxNamed = 5

// adopted returns the event about objects that existed before they became part of the release.
func adopted(adopted []object.Key) []Event {
	if len(adopted) == 0 {
		return nil
	}

	names := make([]string, 0, len(adopted))
	for _, key := range adopted {
		names = append(names, key.String())
	}

	slices.Sort(names)

	return news(v1alpha2.AdoptedReason, "Adopt",
		fmt.Sprintf("Adopted %s that existed: %s", object.Count(len(names), "object"), object.List(names, maxNamed)))
}

// rewritten returns the events about objects that were recreated, or lost fields of others, when they were changed.
// There is one for each object, as for those that are corrected.
func rewritten(results apply.Results) []Event {
	var all []Event

	for _, r := range results {
		switch {
		case r.Outcome == apply.Replaced:
			all = append(all, about(r.Object, news(v1alpha2.RecreatedReason, "Recreate", fmt.Sprintf(
				"Deleted and recreated %s to change an immutable field: %s", r.Object, r.Reason)))...)
		case len(r.Removed) > 0:
			all = append(all, about(r.Object, news(v1alpha2.FieldsRemovedReason, "Patch", fmt.Sprintf(
				"Removed from %s what is invalid beside the fields of the release: %s",
				r.Object, object.List(r.Removed, maxNamed))))...)
		}
	}

	return all
}

// about returns events with the other object that they are about.
func about(o object.Key, all []Event) []Event {
	for i := range all {
		all[i].Related = o
	}

	return all
}

// corrected returns the event about an object that differed from the release, or was missing. There is one for each
// object: events with the same reason, action and objects are counted, and only the first shows its message.
func corrected(o object.Key, missing bool, description string) []Event {
	action := "Patch"
	if missing {
		action = "Create"
	}

	return about(o, news(v1alpha2.DriftCorrectedReason, action, "Corrected drift: "+description))
}

// deletingCRDs returns the event about CRDs that are being deleted.
func deletingCRDs(names []string) []Event {
	messages := make([]string, 0, len(names))
	for _, name := range names {
		messages = append(messages, fmt.Sprintf("CustomResourceDefinition %s "+
			"is being deleted, and with it all objects of its kind; it will be recreated once it is gone", name))
	}

	return warn(v1alpha2.CRDDeletingReason, "Reconcile", messages...)
}

// orphanedCRDs returns the event about CRDs that stay although the version that was applied does not include them, and
// about the objects of theirs that a rollback leaves; empty for none.
func orphanedCRDs(version string, dropped []string, left string) []Event {
	switch {
	case len(dropped) == 0:
		return nil
	case left != "":
		return warn(v1alpha2.OrphanedCRDsReason, "Reconcile", fmt.Sprintf("%s does not include CustomResourceDefinitions "+
			"of the version before; until a version that does is installed, nothing reconciles their objects or removes "+
			"finalizers of these: %s", version, left))
	}

	return news(v1alpha2.OrphanedCRDsReason, "Reconcile", fmt.Sprintf("%s does not include CustomResourceDefinitions of "+
		"the version before, which are kept: %s", version, object.List(dropped, maxNamed)))
}

// releaseKept returns the event about a release that stays although its resource is deleted.
func releaseKept(message string) []Event { return warn(v1alpha2.ReleaseKeptReason, "Delete", message) }

// maxIgnored is how many parts of the spec without effect the status has.
const maxIgnored = 20

// shownIgnored returns parts of the spec without effect for the status, bounded.
func shownIgnored(warnings []string) []string {
	shown := slices.Clone(warnings[:min(len(warnings), maxIgnored)])
	for i := range shown {
		shown[i] = note(shown[i])
	}

	return shown
}

// ignored returns the event about parts of the spec that have no effect.
func ignored(warnings []string) []Event { return warn(ignoredReason, "Reconcile", warnings...) }

// unpublished returns the event about flags that a manager may not have.
func unpublished(flags []values.Flag) []Event {
	messages := make([]string, 0, len(flags))
	for _, f := range flags {
		messages = append(messages, f.String())
	}

	return warn(unpublishedFlagReason, "Reconcile", messages...)
}

// sourceUnavailable returns the event about a stored chart that is used in place of its source.
func sourceUnavailable(digest, problem string) []Event {
	return warn(v1alpha2.ComponentsFetchErrorReason, "Fetch", fmt.Sprintf(
		"The source is not available, so the stored chart %s remains in use: %s", digest, problem))
}

// unsafeCRDsAllowed returns the event about unsafe changes of CRDs that a user allows.
func unsafeCRDsAllowed(changes []string) []Event {
	return warn(v1alpha2.UnsafeCRDsAllowedReason, "Reconcile", changes...)
}
