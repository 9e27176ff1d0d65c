package storage

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// recordKey is the key of a Secret that has the record of a revision.
const recordKey = "release"

// Helm's own labels on its Secrets.
const (
	ownerLabel    = "owner"
	nameLabel     = "name"
	numberLabel   = "version"
	statusLabel   = "status"
	createdLabel  = "createdAt"
	modifiedLabel = "modifiedAt"

	ownerHelm = "helm"
)

// ownLabels are all of Helm's own labels.
var ownLabels = []string{ownerLabel, nameLabel, numberLabel, statusLabel, createdLabel, modifiedLabel}

// Capstan's labels on the Secret of a revision, beside v1alpha2.HolderLabel, DigestLabel and
// VersionLabel.
const (
	// RevisionLabel repeats the number of the revision that the labels were written for. Helm
	// copies labels from one revision to the next: an upgrade by the helm program copies those of
	// the revision before it, a rollback those of its target. Capstan's labels are therefore valid
	// only if this number is the revision's own; otherwise another program created the revision.
	RevisionLabel = v1alpha2.Prefix + "/revision"

	// ChartDigestLabel is the digest of the chart's archive, encoded to fit into a label.
	ChartDigestLabel = v1alpha2.Prefix + "/chart-digest"

	// HealthyLabel is "true" once all objects of the revision have been healthy: it can be rolled
	// back to.
	HealthyLabel = v1alpha2.Prefix + "/healthy"

	// PausedLabel is "true" if the revision scales the provider to zero.
	PausedLabel = v1alpha2.Prefix + "/paused"

	// RollbackLabel is the number of the revision that a rollback returned to.
	RollbackLabel = v1alpha2.Prefix + "/rollback-to"

	// AdoptedLabel is the number of objects that existed before the revision and belonged to no release; absent
	// without any.
	AdoptedLabel = v1alpha2.Prefix + "/adopted"

	// AdoptedVersionLabel is the version of the provider that these objects were; absent if it is unknown.
	AdoptedVersionLabel = v1alpha2.Prefix + "/adopted-version"

	// StagedLabel is the last wave that was applied, as waves.Place.Label writes it, and Complete once Engine.Advance has
	// taken the last step with the revision. The label stays: without it, the last write would have no time, and
	// objects of the last wave no time to become healthy.
	StagedLabel = v1alpha2.Prefix + "/staged"

	// Complete is the value of StagedLabel of a revision that had several waves.
	Complete = "complete"

	// SaltLabel is a random text, so that the digest of the revision does not reveal values that can be guessed.
	SaltLabel = v1alpha2.Prefix + "/salt"

	// FailureLabel is the kind of failure, a state.Failure.
	FailureLabel = v1alpha2.Prefix + "/failure"

	// The parts of a state.Owner.
	resourceLabel = v1alpha2.Prefix + "/resource-uid"
	homeLabel     = v1alpha2.Prefix + "/resource-cluster-uid"
	clusterLabel  = v1alpha2.Prefix + "/cluster-uid"
)

// Selector selects the Secrets of a release, or of all releases of a namespace if the name is
// empty.
func Selector(release string) string {
	selector := labels.Set{ownerLabel: ownerHelm}
	if release != "" {
		selector[nameLabel] = release
	}

	return selector.String()
}

// InstalledSelector selects the Secrets of the releases of a name that IsInstalled may be true for.
func InstalledSelector(release string) string { return Selector(release) + "," + RevisionLabel }

// IsRecord reports whether a Secret with these labels belongs to a release.
func IsRecord(labels map[string]string) bool { return labels[ownerLabel] == ownerHelm }

// ReleaseName returns the name of the release that a Secret belongs to, by its labels.
func ReleaseName(labels map[string]string) string { return labels[nameLabel] }

// IsChangedByOthers reports whether another program than Capstan wrote a revision last, by the
// labels of its Secret.
func IsChangedByOthers(labels map[string]string) bool {
	status := state.Status(labels[statusLabel])
	own := labels[RevisionLabel] != "" && labels[RevisionLabel] == labels[numberLabel]

	return !own || status == state.StatusUninstalling || status == state.StatusUninstalled
}

// IsInstalled reports whether a revision is one of Capstan's, or was created from one, and not left over
// from an uninstall that has kept the history, by the labels of its Secret.
func IsInstalled(labels map[string]string) bool {
	return labels[RevisionLabel] != "" && state.Status(labels[statusLabel]) != state.StatusUninstalled
}

// IsCurrent reports whether a revision is not superseded, by the labels of its Secret.
func IsCurrent(labels map[string]string) bool {
	return state.Status(labels[statusLabel]) != state.StatusSuperseded
}

// LastWrite returns when an object was written last, according to its managed fields; zero if they do not tell.
func LastWrite(fields []metav1.ManagedFieldsEntry) metav1.Time {
	var last metav1.Time

	for _, entry := range fields {
		if entry.Time != nil && entry.Time.After(last.Time) {
			last = *entry.Time
		}
	}

	return last
}

// maxLabels is how many bytes of labels, and of the kinds of owners, Strip leaves of an object.
const maxLabels = 4 << 10

// Strip removes from the metadata of a Secret or ConfigMap what is never read, and labels that are so large that many
// such objects would use up memory. Of the managed fields it keeps the time of the last write.
func Strip(m *metav1.PartialObjectMetadata) {
	written := LastWrite(m.ManagedFields)
	kept := metav1.ObjectMeta{
		Namespace:         m.Namespace,
		Name:              m.Name,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp,
		Labels:            m.Labels,
		ManagedFields:     []metav1.ManagedFieldsEntry{{Time: &written}},
	}

	size := 0
	for key, value := range m.Labels {
		size += len(key) + len(value)
	}

	for _, owner := range m.OwnerReferences {
		size += len(owner.APIVersion) + len(owner.Kind)
		kept.OwnerReferences = append(kept.OwnerReferences,
			metav1.OwnerReference{APIVersion: owner.APIVersion, Kind: owner.Kind})
	}

	if size > maxLabels {
		kept.OwnerReferences = nil
		kept.Labels = map[string]string{}

		for _, key := range ownLabels {
			if value, ok := m.Labels[key]; ok {
				kept.Labels[key] = value
			}
		}
	}

	m.ObjectMeta = kept
}

// RevisionOf returns the revision that a Secret's metadata describes. It returns false if the
// Secret is not one of Helm's, which have the name of their revision, or CheckRecords refuses its number.
func RevisionOf(m *metav1.ObjectMeta) (state.Revision, bool) {
	number, err := strconv.Atoi(m.Labels[numberLabel])
	if err != nil || number < 1 || number > maxNumber || m.Name != helm.RecordName(ReleaseName(m.Labels), number) {
		return state.Revision{}, false
	}

	r := state.Revision{
		Number:          number,
		Status:          state.Status(m.Labels[statusLabel]),
		Created:         m.CreationTimestamp.Time,
		Changed:         m.CreationTimestamp.Time,
		UID:             m.UID,
		ResourceVersion: m.ResourceVersion,
		Owner: state.Owner{
			Resource: types.UID(m.Labels[resourceLabel]),
			Home:     types.UID(m.Labels[homeLabel]),
			Cluster:  types.UID(m.Labels[clusterLabel]),
		},
	}

	// Helm copies its label modifiedAt from older revisions, so only the API server knows the time
	// of the last write.
	if written := LastWrite(m.ManagedFields); written.After(r.Changed) {
		r.Changed = written.Time
	}

	r.FinishedJobs = finishedJobs(m.Labels, number)

	if origin, err := strconv.Atoi(m.Labels[RevisionLabel]); err == nil {
		r.Origin = origin
	}

	r.Request = requestOf(m.Labels, number)

	if r.Ours() {
		r.Holder = m.Labels[v1alpha2.HolderLabel]
		r.Digest = m.Labels[v1alpha2.DigestLabel]
		r.Version = m.Labels[v1alpha2.VersionLabel]
		r.ChartDigest = decodeDigest(m.Labels[ChartDigestLabel])
		r.Healthy = m.Labels[HealthyLabel] == "true"
		r.Paused = m.Labels[PausedLabel] == "true"
		r.RollbackTo, _ = strconv.Atoi(m.Labels[RollbackLabel]) // 0 without the label
		r.Adopted, _ = strconv.Atoi(m.Labels[AdoptedLabel])
		r.AdoptedVersion = m.Labels[AdoptedVersionLabel]
		wave, staged := waves.FromLabel(m.Labels[StagedLabel])
		r.Wave, r.Staged = int(wave), staged
		r.Basis = basisOf(m.Labels)
		r.Failure = state.Failure(m.Labels[FailureLabel])
	}

	return r, true
}

// Labels are what Capstan records of a revision that it creates.
type Labels struct {
	// Holder identifies the process that creates the revision.
	Holder string
	// Digest identifies everything that the revision is created from.
	Digest string
	// Version of the provider.
	Version string
	// ChartDigest is the digest of the chart's archive.
	ChartDigest string
	// Paused is true if the revision scales the provider to zero.
	Paused bool
	// AdoptedVersion is the version that another program has installed before; empty if none has, or if it is unknown.
	AdoptedVersion string
	// RollbackTo is the revision that a rollback returns to; 0 for an install or upgrade.
	RollbackTo int
	// Staged is the first wave as the value of StagedLabel, if applying it does not complete the revision.
	Staged string
	// Request that the revision results from; zero for a rollback that was not requested.
	Request state.Request
	// Owner is the resource that the revision is created for. If it is empty, the revision has the owner of the one
	// whose labels Helm has copied.
	Owner state.Owner
	// Basis is what the revision is created from; that of its target for a rollback.
	Basis state.Basis
}

// appliedTo returns a copy of a Secret's labels with Capstan's own for the revision, in place of
// those that Helm has copied from another one.
func (l Labels) appliedTo(labels map[string]string, revision int) map[string]string {
	applied := maps.Clone(labels)
	if applied == nil {
		applied = map[string]string{}
	}

	maps.DeleteFunc(applied, func(label, _ string) bool { return strings.HasPrefix(label, finishedJobPrefix) })
	delete(applied, HealthyLabel)
	delete(applied, FailureLabel)
	delete(applied, PausedLabel)
	delete(applied, AdoptedLabel)
	delete(applied, AdoptedVersionLabel)
	delete(applied, StagedLabel)
	delete(applied, RollbackLabel)
	delete(applied, RequestLabel)
	delete(applied, RequestedAtLabel)
	delete(applied, AutomaticLabel)
	delete(applied, InputsLabel)
	delete(applied, EnvironmentLabel)

	maps.Copy(applied, RequestLabels(l.Request, revision))
	maps.Copy(applied, basisLabels(l.Basis))

	if l.Paused {
		applied[PausedLabel] = "true"
	}

	if l.Staged != "" {
		applied[StagedLabel] = l.Staged
	}

	if l.AdoptedVersion != "" {
		applied[AdoptedVersionLabel] = v1alpha2.LabelValue(l.AdoptedVersion)
	}

	if l.RollbackTo != 0 {
		applied[RollbackLabel] = strconv.Itoa(l.RollbackTo)
	}

	applied[RevisionLabel] = strconv.Itoa(revision)
	applied[v1alpha2.HolderLabel] = v1alpha2.LabelValue(l.Holder)
	applied[v1alpha2.DigestLabel] = l.Digest
	applied[v1alpha2.VersionLabel] = v1alpha2.LabelValue(l.Version)
	applied[ChartDigestLabel] = encodeDigest(l.ChartDigest)

	if l.Owner != (state.Owner{}) {
		applied[resourceLabel] = string(l.Owner.Resource)
		applied[homeLabel] = string(l.Owner.Home)
		applied[clusterLabel] = string(l.Owner.Cluster)
	}

	return applied
}

// sameAttempt reports whether a revision with these labels is an attempt at the same.
func (l Labels) sameAttempt(labels map[string]string) bool {
	rollbackTo, _ := strconv.Atoi(labels[RollbackLabel]) // 0 without the label

	return labels[v1alpha2.DigestLabel] == l.Digest && rollbackTo == l.RollbackTo
}

// isOwn reports whether the labels of a revision are its own, see RevisionLabel.
func isOwn(labels map[string]string, revision int) bool {
	return labels[RevisionLabel] == strconv.Itoa(revision)
}

// customLabels returns the labels of a Secret without Helm's.
func customLabels(labels map[string]string) map[string]string {
	custom := maps.Clone(labels)
	maps.DeleteFunc(custom, func(key, _ string) bool { return slices.Contains(ownLabels, key) })

	return custom
}
