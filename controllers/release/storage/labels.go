package storage

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/state"
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

// RevisionLabel is the only label of Capstan's on the Secret of a revision, and repeats the number of the revision that
// it was written for. Helm copies labels from one revision to the next: an upgrade by the helm program copies those of
// the revision before it, a rollback those of its target. If the number is not the revision's own, another program
// created the revision.
const RevisionLabel = v1alpha2.Prefix + "/revision"

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
	status := v1alpha2.RevisionStatus(labels[statusLabel])
	own := labels[RevisionLabel] != "" && labels[RevisionLabel] == labels[numberLabel]

	return !own || status == v1alpha2.RevisionUninstalling || status == v1alpha2.RevisionUninstalled
}

// IsInstalled reports whether a revision is one of Capstan's, or was created from one, and not left over
// from an uninstall that has kept the history, by the labels of its Secret.
func IsInstalled(labels map[string]string) bool {
	return labels[RevisionLabel] != "" && v1alpha2.RevisionStatus(labels[statusLabel]) != v1alpha2.RevisionUninstalled
}

// IsCurrent reports whether a revision is not superseded, by the labels of its Secret.
func IsCurrent(labels map[string]string) bool {
	return v1alpha2.RevisionStatus(labels[statusLabel]) != v1alpha2.RevisionSuperseded
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
// such objects would use up memory. Of the managed fields it keeps the time of the last write, and of the annotations
// the name of the Certificate that cert-manager has issued.
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

	if name := m.Annotations[v1alpha2.CertificateNameAnnotation]; name != "" && len(name) <= maxLabels {
		kept.Annotations = map[string]string{v1alpha2.CertificateNameAnnotation: name}
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

		for _, key := range append(slices.Clone(ownLabels), RevisionLabel) {
			if value, ok := m.Labels[key]; ok {
				kept.Labels[key] = value
			}
		}
	}

	m.ObjectMeta = kept
}

// RevisionOf returns the revision that a Secret's metadata describes. It returns false if the
// Secret is not one of Helm's, which have the name of their revision, or has a number that no program counts up to.
func RevisionOf(m *metav1.ObjectMeta) (state.Revision, bool) {
	number, err := strconv.Atoi(m.Labels[numberLabel])
	if err != nil || number < 1 || number > maxNumber || m.Name != helm.RecordName(ReleaseName(m.Labels), number) {
		return state.Revision{}, false
	}

	r := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Number:             number,
			Status:             v1alpha2.RevisionStatus(m.Labels[statusLabel]),
			Time:               m.CreationTimestamp,
			LastTransitionTime: m.CreationTimestamp,
		},
		Stored: v1alpha2.RevisionStatus(m.Labels[statusLabel]),
		UID:    m.UID, ResourceVersion: m.ResourceVersion,
	}

	// Helm copies its label modifiedAt from older revisions, so only the API server knows the time
	// of the last write.
	if written := LastWrite(m.ManagedFields); written.After(r.LastTransitionTime.Time) {
		r.LastTransitionTime = written
	}

	if origin, err := strconv.Atoi(m.Labels[RevisionLabel]); err == nil {
		r.Origin = origin
	}

	return r, true
}

// labelsFor returns a copy of the labels of others with Capstan's own for the revision, in place of those that Helm or
// an older revision has brought.
func labelsFor(revision int, labels map[string]string) map[string]string {
	applied := map[string]string{RevisionLabel: strconv.Itoa(revision)}

	for label, value := range labels {
		if !strings.HasPrefix(label, v1alpha2.Prefix+"/") {
			applied[label] = value
		}
	}

	return applied
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
