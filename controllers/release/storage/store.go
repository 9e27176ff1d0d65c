// Package storage reads and writes the Secrets in which Helm stores the revisions of a release.
// They stay readable to the helm programs. What Capstan has to know of a revision is not there, but in the status of
// the resource.
package storage

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// maxDescription limits a revision's description in bytes.
const maxDescription = 1024

// Store has the revisions of one release during one action, and writes them as Helm does, with these differences:
//   - It reads only those that the action needs. What cannot be decoded stays as it is; Helm would panic, or continue
//     as if there were none.
//   - A failed revision stays failed. Helm marks it superseded once a later one succeeds.
//   - It stores charts without their templates and files, which are never read again, because a
//     Secret holds only one megabyte.
type Store struct {
	secrets *secrets
	release types.NamespacedName
	memory  state.Memory

	statuses  map[int]v1alpha2.RevisionStatus // of all revisions, as the caller knows them or else as stored
	stored    map[int]v1alpha2.RevisionStatus // of all revisions, as stored
	decoded   map[int]*helm.Release           // those that were read; nil for one that cannot be decoded
	written   []int                           // revisions, in the order of writes
	uncertain bool                            // a write has failed, so what is stored is unknown
}

// New returns the store for an action on a release, of whose Secrets the metadata is given. If there are none, but has
// got one meanwhile, Create fails. Records that are too far ahead of the last revision are left out. A status that is
// known counts, also if its write to storage was lost.
func New(
	client corev1.SecretInterface,
	release types.NamespacedName,
	memory state.Memory,
	records []metav1.PartialObjectMetadata,
) *Store {
	s := &Store{
		secrets:  &secrets{SecretInterface: client, versions: map[string]string{}, read: map[string][]byte{}},
		release:  release,
		memory:   memory,
		statuses: map[int]v1alpha2.RevisionStatus{},
		stored:   map[int]v1alpha2.RevisionStatus{},
		decoded:  map[int]*helm.Release{},
	}

	for i := range records {
		revision, ok := RevisionOf(&records[i].ObjectMeta)
		if !ok || memory.Last > 0 && revision.Number > memory.Last+state.MaxAhead {
			continue
		}

		if known := memory.Of(revision.Number); known.Confirmed() {
			revision.Recall(known.ReleaseRevision)
		}

		s.statuses[revision.Number] = revision.Status
		s.stored[revision.Number] = revision.Stored
		s.secrets.versions[records[i].Name] = records[i].ResourceVersion
	}

	return s
}

// Versions returns the resource versions of the Secrets that hold the release's revisions, as they were read or written
// last. It returns false if they are not known, because a write has failed.
func (s *Store) Versions() (versions []string, known bool) {
	return slices.Collect(maps.Values(s.secrets.versions)), !s.uncertain
}

// newestFirst returns the numbers of the revisions.
func (s *Store) newestFirst() []int {
	numbers := slices.Sorted(maps.Keys(s.statuses))
	slices.Reverse(numbers)

	return numbers
}
