// Package health reports whether the objects of a provider's release are healthy, and which of them
// have changed since they were last verified to match the release. It reads objects from watches, so
// nothing polls or waits for a Deployment: once a provider's objects have been checked, the provider
// is woken when an answer changes. Only what may not be watched is read now and then.
package health

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/problem"
)

const (
	// pollTime is the interval of reads of objects that may not be watched.
	pollTime = 10 * time.Minute
	// pollUnhealthyTime is the interval while they are not healthy.
	pollUnhealthyTime = 5 * time.Second
	// pollBlindTime is the interval while the watch of a kind cannot be trusted.
	pollBlindTime = time.Minute
)

// Wake schedules a reconcile of a provider, given its label and the namespace of its release, after
// some time.
type Wake func(provider, namespace string, after time.Duration)

// Options of a Tracker.
type Options struct {
	// Client watches objects, and reads the pods of unhealthy workloads and what the watches do not show.
	Client client.WithWatch
	// Remote means that nothing is watched, because the objects are in another cluster.
	Remote bool
	// Namespaces are those that are watched; empty for all.
	Namespaces []string
	// Wake is called when the health of a provider's object changes, when an object changes that was
	// recorded, and when objects must be read again.
	Wake Wake
}

// Owner is the release whose objects are checked.
type Owner struct {
	// Provider is the label of the provider, and Release the name of its release in Namespace.
	Provider, Release, Namespace string
	// Reader reads objects that the operator may not watch.
	Reader client.Reader
}

func (o Owner) key() string { return o.Namespace + "/" + o.Provider }

// obstacle returns why an object is not one of the release; empty if it is.
func (o Owner) obstacle(found *seen) string {
	name := found.Annotations[v1alpha2.HelmReleaseNameAnnotation]
	namespace := found.Annotations[v1alpha2.HelmReleaseNamespaceAnnotation]

	switch {
	case name == "":
		return "exists, but does not belong to the release"
	case name != o.Release || namespace != o.Namespace:
		return "belongs to release " + namespace + "/" + name
	}

	return ""
}

// Tracker watches the objects of releases.
type Tracker struct {
	client     client.WithWatch
	namespaces []string
	wake       Wake
	ctx        context.Context // of the watches
	stop       context.CancelFunc

	mu      sync.Mutex
	watches map[place]*watch // nil if nothing is watched
	// used are the places of the objects of each owner.
	used    map[string]map[place]bool
	objects map[object.Key]*known
	// strangers is when providers were, or will be, woken last for objects that they have not looked at: label/namespace
	// -> time.
	strangers map[string]time.Time
}

// known is what is known of an object of a release.
type known struct {
	// owner is the key of the owner that looked at the object last; empty for none.
	owner string
	// verified is the version that was compared with the release, at the API server itself, and since when that was. It
	// is nil if none was.
	verified *object.Snapshot
	since    time.Time
	// drifted means that this version differs from the release.
	drifted bool
	// shown means that the watch has shown this version, or a newer one.
	shown bool
	// finished means that the object was a Job which had completed when it was deleted.
	finished bool
	// read is the object as it was last read, and when that was, because the watch shows only its metadata.
	read   *seen
	readAt time.Time
	// unhealthySince is when a workload was first seen unhealthy; zero if it is healthy.
	unhealthySince time.Time
}

// NewTracker returns a tracker.
func NewTracker(options Options) *Tracker {
	t := &Tracker{
		client:     options.Client,
		namespaces: options.Namespaces,
		wake:       options.Wake,
		used:       map[string]map[place]bool{},
		objects:    map[object.Key]*known{},
		strangers:  map[string]time.Time{},
	}
	t.ctx, t.stop = context.WithCancel(context.Background())

	if !options.Remote {
		t.watches = map[place]*watch{}
	}

	return t
}

// Stop ends all watches.
func (t *Tracker) Stop() { t.stop() }

// known returns what is known of an object. t.mu must be held.
func (t *Tracker) known(o object.Key) *known {
	if t.objects[o] == nil {
		t.objects[o] = &known{}
	}

	return t.objects[o]
}

// MarkVerified records that objects match their release in these versions. Their next change wakes
// the provider.
func (t *Tracker) MarkVerified(versions []object.Snapshot) { t.mark(versions, false) }

// MarkDrifted records that objects differ from their release in these versions and stay so:
// Unverified continues to return them. Their next change wakes the provider.
func (t *Tracker) MarkDrifted(versions []object.Snapshot) { t.mark(versions, true) }

func (t *Tracker) mark(versions []object.Snapshot, drifted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	for _, v := range versions {
		o := t.known(v.Object)
		o.verified, o.drifted, o.shown, o.finished = &v, drifted, false, false
		o.since = time.Now()
	}
}

// Check returns the health of the objects of a release as the watches show them. For a workload that
// has been unhealthy for a few seconds, its pods explain why. Pods are not watched, so the provider is
// woken to read them again, less and less often; so it is for objects that are not watched.
func (t *Tracker) Check(ctx context.Context, owner Owner, objects []object.Key) (Report, error) {
	t.follow(owner, objects)

	var report Report

	starting, stale, blind := false, false, false

	for _, o := range objects {
		found, err := t.look(ctx, owner, o)
		if err != nil {
			return Report{}, err
		}

		report.Objects = append(report.Objects, ObjectHealth{Object: o, Result: t.judge(ctx, owner, o, found)})
		starting, stale, blind = starting || found.starting, stale || found.stale, blind || found.blind

		if found.unwatched && !slices.Contains(report.Unwatched, o.Kind) {
			report.Unwatched = append(report.Unwatched, o.Kind)
		}
	}

	switch unwatched := len(report.Unwatched) > 0; {
	case starting, stale, unwatched && !report.Healthy():
		t.wake(owner.Provider, owner.Namespace, pollUnhealthyTime)
	case blind:
		t.wake(owner.Provider, owner.Namespace, pollBlindTime)
	case unwatched:
		t.wake(owner.Provider, owner.Namespace, pollTime)
	}

	return report, nil
}

// judge returns the health of an object.
func (t *Tracker) judge(ctx context.Context, owner Owner, o object.Key, found look) Result {
	switch {
	case found.stale && kindsWithoutStatus[o.GroupKind()] && !isReadWhole(o.GroupKind()):
		// It was recorded, so it exists, and that is enough.
		return Result{Status: status.CurrentStatus}
	case found.stale:
		return Result{Status: status.InProgressStatus, Message: "has just been applied"}
	case found.seen == nil && found.finished:
		return Result{Status: status.CurrentStatus, Finished: true}
	case found.seen == nil:
		return Result{Status: status.NotFoundStatus, Message: "does not exist"}
	}

	// What the operator may read of objects of others is not for the users of this provider.
	if obstacle := owner.obstacle(found.seen); obstacle != "" {
		return Result{Status: status.UnknownStatus, Message: obstacle}
	}

	return t.explain(ctx, owner, o, found.seen)
}

// Unverified returns the objects of a release that are not known to match it: those that were never
// recorded, that have drifted, or that were changed or deleted since. It returns an object until that
// is marked as verified. Jobs that have completed are not compared any more. It makes no requests
// except to read what the watches do not show.
func (t *Tracker) Unverified(ctx context.Context, owner Owner, objects []object.Key) ([]object.Key, error) {
	t.follow(owner, objects)

	var unverified []object.Key

	for _, o := range objects {
		found, err := t.look(ctx, owner, o)
		if err != nil {
			return nil, err
		}

		if found.finished || found.seen != nil && found.seen.result.Finished {
			continue
		}

		if !found.verified {
			unverified = append(unverified, o)
		}
	}

	return unverified, nil
}

// Verified returns the objects that are known to match their release: the watch shows them as they were recorded, and
// nothing excludes them from the comparison. It makes no requests.
func (t *Tracker) Verified(objects []object.Key) []object.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()

	var verified []object.Snapshot

	for _, o := range objects {
		recorded, w := t.objects[o], t.watchOf(o)
		if recorded == nil || recorded.verified == nil || recorded.drifted || !w.shows() {
			continue
		}

		shown, _ := w.get(o)
		if shown != nil && shown.Annotations[v1alpha2.DriftAnnotation] == "" && recorded.verified.Same(shown.snapshot) {
			verified = append(verified, *recorded.verified)
		}
	}

	return verified
}

// look is what an object looks like.
type look struct {
	// seen is nil if the object does not exist.
	seen *seen
	// verified means that it matches its release, as far as is known.
	verified bool
	// finished means that it was a Job that has completed, and was deleted.
	finished bool
	// stale means that the watch does not show yet what was just recorded. The provider is woken once it does.
	stale bool
	// starting means that the watch has not shown the objects of the kind yet, blind that it may have missed changes, and
	// unwatched that there is none.
	starting, blind, unwatched bool
}

// look looks at an object: at the API server, as the owner, if the watch does not show it.
func (t *Tracker) look(ctx context.Context, owner Owner, o object.Key) (look, error) {
	t.mu.Lock()
	recorded := *t.known(o)
	w := t.watchOf(o)
	t.mu.Unlock()

	if !w.shows() {
		return t.lookUnshown(ctx, owner, o, recorded, w)
	}

	shown, version := w.get(o)

	switch isBehind := recorded.isNewerThan(version); {
	case isBehind && time.Since(recorded.since) < startTime:
		return look{stale: true, verified: !recorded.drifted}, nil
	case isBehind:
		return t.lookBehind(ctx, owner, o, recorded)
	}

	var err error

	// The status of an object of others is not needed.
	if shown != nil && !shown.final && owner.obstacle(shown) == "" {
		shown, err = t.read(ctx, owner, o, shown, recorded)
	}

	var found look

	found.compare(shown, recorded)

	return found, err
}

// isNewerThan reports whether what was recorded is newer than a version.
func (k *known) isNewerThan(version string) bool {
	return k.verified != nil && object.IsOlder(version, k.verified.ResourceVersion)
}

// lookUnshown looks at an object of a kind whose watch does not show any yet, or no longer.
func (t *Tracker) lookUnshown(
	ctx context.Context, owner Owner, o object.Key, recorded known, w watch,
) (look, error) {
	found := look{blind: w.runs() && w.blind, unwatched: w.refused || w.informer == nil && t.watches != nil}
	found.starting = w.runs() && !found.blind
	exists := recorded.verified != nil && kindsWithoutStatus[o.GroupKind()]

	if exists && found.starting && time.Since(w.started) < startTime {
		return look{stale: true, verified: !recorded.drifted, starting: true}, nil
	}

	read, err := get(ctx, owner.Reader, o)
	found.compare(read, recorded)

	return found, err
}

// lookBehind looks at an object at the API server, because its watch is behind what was recorded for long. If the API
// server is, too, etcd was restored from a backup: what was recorded since is void.
func (t *Tracker) lookBehind(ctx context.Context, owner Owner, o object.Key, recorded known) (look, error) {
	read, err := get(ctx, owner.Reader, o)
	if err != nil {
		return look{}, err
	}

	if read == nil || recorded.isNewerThan(read.ResourceVersion) {
		recorded = known{owner: recorded.owner, finished: recorded.finished}

		t.mu.Lock()
		*t.known(o) = recorded
		t.mu.Unlock()
	}

	var found look

	found.compare(read, recorded)

	return found, nil
}

// read returns an object of which the watch shows only the metadata: as it was read before, unless that has changed.
func (t *Tracker) read(ctx context.Context, owner Owner, o object.Key, shown *seen, recorded known) (*seen, error) {
	if before := recorded.read; before != nil {
		isAhead := object.IsOlder(shown.ResourceVersion, before.ResourceVersion)
		if before.ResourceVersion == shown.ResourceVersion || isAhead && time.Since(recorded.readAt) < startTime {
			return before, nil
		}
	}

	found, err := get(ctx, owner.Reader, o)
	if err != nil {
		return nil, err
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	now := t.known(o)
	now.read, now.readAt = found, time.Now()

	return found, nil
}

// compare sets what the object looks like, and what follows from what was recorded.
func (l *look) compare(found *seen, recorded known) {
	l.seen = found
	l.finished = found == nil && recorded.finished
	l.verified = found != nil && recorded.verified != nil && !recorded.drifted &&
		recorded.verified.Same(found.snapshot)
}

// Unconverted returns the problem of an object of which it is not known how it is, because it cannot be converted to be
// read.
func Unconverted(o object.Key, err error) *problem.Error {
	return &problem.Error{
		Reason: v1alpha2.UnreadableObjectsReason, Outcome: problem.Retrying, Cause: err,
		Message: fmt.Sprintf("%s cannot be read, so its health and drift are not known: %s%s",
			o, object.Reason(o.Kind, err), object.Fix(err)),
	}
}

// get reads an object; nil if it does not exist.
func get(ctx context.Context, reader client.Reader, o object.Key) (*seen, error) {
	var found client.Object = &unstructured.Unstructured{}
	if kindsWithoutStatus[o.GroupKind()] && !isReadWhole(o.GroupKind()) {
		found = &metav1.PartialObjectMetadata{}
	}

	found.GetObjectKind().SetGroupVersionKind(o.GroupVersionKind)

	err := reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, found)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}

	if object.IsConversion(err) {
		return nil, Unconverted(o, err)
	}

	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o, err)
	}

	return seenOf(o, found), nil
}

// matters notes that a watch has shown an object, and reports whether that matters to its provider: the health has
// changed, or the object differs from its recorded version, or has it at last. It is a stranger if no provider has
// looked at it.
func (t *Tracker) matters(id object.Key, e event) (stranger, matters bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	o := t.objects[id]
	recorded := o != nil && o.verified != nil

	if recorded && o.isNewerThan(e.now.ResourceVersion) && time.Since(o.since) < startTime {
		return false, false
	}

	if o != nil {
		o.finished = e.deleted && e.now.result.Finished
	}

	switch {
	case e.deleted && o != nil:
		t.objects[id] = &known{owner: o.owner, finished: o.finished}
		return false, true
	case recorded && !o.shown:
		o.shown = true
		return false, true
	case recorded && !e.now.snapshot.Same(*o.verified):
		return false, true
	default:
		return o == nil, !e.initial && e.changes()
	}
}
