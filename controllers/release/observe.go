package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Status of a revision, in Helm's words.
type Status string

// The statuses that Helm gives.
const (
	StatusUnknown         Status = "unknown"
	StatusDeployed        Status = "deployed"
	StatusSuperseded      Status = "superseded"
	StatusFailed          Status = "failed"
	StatusUninstalled     Status = "uninstalled"
	StatusUninstalling    Status = "uninstalling"
	StatusPendingInstall  Status = "pending-install"
	StatusPendingUpgrade  Status = "pending-upgrade"
	StatusPendingRollback Status = "pending-rollback"
)

// Pending reports whether a program is at work on the revision, or died while it was.
func (s Status) Pending() bool {
	return s == StatusPendingInstall || s == StatusPendingUpgrade || s == StatusPendingRollback
}

// Revision is one entry in a release's history, as its Secret's metadata tells of it.
type Revision struct {
	Number int
	Status Status
	// Origin is the number of the revision of ours that the labels come from, 0 if there was none.
	// If it is not Number, somebody else made this revision: by an upgrade from, or a rollback to,
	// the revision Origin.
	Origin int
	// Holder, Digest, Version (of the provider) and ChartDigest are what Capstan noted when it made
	// the revision; empty if it did not.
	Holder, Digest, Version, ChartDigest string
	// Healthy says that all its objects were healthy once.
	Healthy bool
	// RollbackTo is the number of the revision that Capstan returned to by this one; 0 if it is no
	// rollback of Capstan's.
	RollbackTo int
	// Failure is why it failed; empty if it did not, or if Capstan did not see why.
	Failure Failure
	// Created is when the revision was made, Changed when its record was last written.
	Created, Changed time.Time
	// Unreadable is set once Read or an action has found that the record cannot be decoded.
	Unreadable bool

	// UID and ResourceVersion of the Secret.
	UID             types.UID
	ResourceVersion string
}

// Ours reports whether Capstan made the revision.
func (r Revision) Ours() bool { return r.Origin != 0 && r.Origin == r.Number }

// Observation is what storage holds of a release.
type Observation struct {
	Namespace, Name string
	// Revisions, newest first.
	Revisions []Revision
	// Busy says that this Engine is running an action on the release.
	Busy bool
}

// Newest is the newest revision, if there is any.
func (o Observation) Newest() (Revision, bool) {
	if len(o.Revisions) == 0 {
		return Revision{}, false
	}

	return o.Revisions[0], true
}

// LastHealthy is the newest revision that was healthy and made from something else than the digest:
// the one to return to when what the digest stands for has failed.
func (o Observation) LastHealthy(digest string) (Revision, bool) {
	for _, r := range o.Revisions {
		if r.Healthy && r.Digest != digest && (r.Status == StatusDeployed || r.Status == StatusSuperseded) {
			return r, true
		}
	}

	return Revision{}, false
}

// Attempts are the newest revisions, newest first, that were made from what the digest stands for
// and failed, rollbacks in between left out. What was only interrupted, by a crash of the operator,
// says nothing about the digest and is left out too.
func (o Observation) Attempts(digest string) []Revision {
	var attempts []Revision

	for _, r := range o.Revisions {
		switch {
		case r.RollbackTo != 0 && r.Digest != digest, r.Ours() && r.Failure == Interrupted:
		case r.Ours() && r.Status == StatusFailed && r.Digest == digest:
			attempts = append(attempts, r)
		default:
			return attempts
		}
	}

	return attempts
}

// Find is the revision of a number, if there is one.
func (o Observation) Find(number int) (Revision, bool) {
	for _, r := range o.Revisions {
		if r.Number == number {
			return r, true
		}
	}

	return Revision{}, false
}

// LastOwn is the newest revision that Capstan made.
func (o Observation) LastOwn() (Revision, bool) {
	for _, r := range o.Revisions {
		if r.Ours() {
			return r, true
		}
	}

	return Revision{}, false
}

// secretsResource is where Helm keeps its records.
var secretsResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// ownerSelector selects the Secrets of a release.
func ownerSelector(name string) string {
	return labels.Set{"owner": "helm", "name": name}.String()
}

// Observe looks at a release: one LIST of metadata, no record is fetched or decoded. A release that
// does not exist has no revisions.
func (e *Engine) Observe(ctx context.Context, namespace, name string) (Observation, error) {
	o := Observation{Namespace: namespace, Name: name, Busy: e.isBusy(namespace, name)}

	list, err := e.metadata.Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: ownerSelector(name)})
	if err != nil {
		return o, fmt.Errorf("list the revisions of release %s/%s: %w", namespace, name, err)
	}

	for i := range list.Items {
		r, ok := revisionOf(&list.Items[i].ObjectMeta)
		if !ok {
			continue // not Helm's: its records carry their number
		}

		r.Unreadable = e.records.isUnreadable(namespace, name, r)
		o.Revisions = append(o.Revisions, r)
	}

	slices.SortFunc(o.Revisions, func(a, b Revision) int { return cmp.Compare(b.Number, a.Number) })

	return o, nil
}

// revisionOf reads the metadata of a release's Secret; false if it carries no number.
func revisionOf(m *metav1.ObjectMeta) (Revision, bool) {
	number, err := strconv.Atoi(m.Labels["version"])
	if err != nil || number < 1 || !strings.HasSuffix(m.Name, ".v"+m.Labels["version"]) {
		return Revision{}, false
	}

	r := Revision{
		Number:          number,
		Status:          Status(m.Labels["status"]),
		Created:         m.CreationTimestamp.Time,
		Changed:         m.CreationTimestamp.Time,
		UID:             m.UID,
		ResourceVersion: m.ResourceVersion,
	}
	// Helm's label modifiedAt is inherited from older revisions, so the only true time of a write
	// is the API server's own.
	for _, entry := range m.ManagedFields {
		if entry.Time != nil && entry.Time.After(r.Changed) {
			r.Changed = entry.Time.Time
		}
	}

	if origin, err := strconv.Atoi(m.Labels[RevisionLabel]); err == nil {
		r.Origin = origin
	}

	if r.Ours() {
		r.Holder = m.Labels[v1alpha2.HolderLabel]
		r.Digest = m.Labels[v1alpha2.DigestLabel]
		r.Version = m.Labels[v1alpha2.VersionLabel]
		r.ChartDigest = decodeDigest(m.Labels[ChartDigestLabel])
		r.Healthy = m.Labels[HealthyLabel] == "true"
		r.RollbackTo, _ = strconv.Atoi(m.Labels[RollbackLabel]) // absent: 0
		r.Failure = Failure(m.Labels[FailureLabel])
	}

	return r, true
}
