// Package storage reads and writes the Secrets in which Helm stores the revisions of a release.
// They stay readable to the helm programs. What Capstan has to know of a revision is not there, but in the status of
// the resource.
package storage

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/waves"
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
	new     NewRevision

	statuses  map[int]v1alpha2.RevisionStatus // of all revisions, as the caller knows them or else as stored
	stored    map[int]v1alpha2.RevisionStatus // of all revisions, as stored
	decoded   map[int]*helm.Release           // those that were read; nil for one that cannot be decoded
	known     map[int]state.Revision          // what the caller knows of revisions
	last      int                             // the last revision that the caller knows to have existed; 0 for none
	resumed   *helm.Release                   // the revision that the action writes again; nil for a new one
	created   state.Revision                  // the revision that the action has created
	protected map[int]bool                    // revisions that the history limit does not delete
	written   []int                           // revisions, in the order of writes
	loaded    bool                            // it is known which revisions there are
	uncertain bool                            // a write has failed, so what is stored is unknown
}

// NewRevision is what is known of the revision that an action creates.
type NewRevision struct {
	// Revision without its number and its status.
	Revision state.Revision
	// Owner is the resource that the revision is created for.
	Owner state.Owner
	// Salt of the digests of the release. Default: that of the revision that is resumed, or a new one.
	Salt string
	// Announce is called before the revision is written; it may be nil.
	Announce state.Announce
	// Inventory are the objects that the release may have from then on.
	Inventory []object.Key
}

// Outcome is how an action has ended.
type Outcome struct {
	// Failure of the action; empty if it has succeeded.
	Failure v1alpha2.RevisionFailure
	// Description for Helm's history.
	Description string
	// Adopted is how many objects of the revision existed before and belonged to no release.
	Adopted int
}

// New returns the store for an action on a release.
func New(client corev1.SecretInterface, release types.NamespacedName) *Store {
	return &Store{
		secrets:   &secrets{SecretInterface: client, versions: map[string]string{}, read: map[string][]byte{}},
		release:   release,
		statuses:  map[int]v1alpha2.RevisionStatus{},
		stored:    map[int]v1alpha2.RevisionStatus{},
		decoded:   map[int]*helm.Release{},
		protected: map[int]bool{},
	}
}

// Load takes the metadata of the release's Secrets. Records that are too far ahead of the last revision are left out.
// A status that the caller knows counts, also if its write to storage was lost.
func (s *Store) Load(records []metav1.PartialObjectMetadata) {
	for i := range records {
		revision, ok := RevisionOf(&records[i].ObjectMeta)
		if !ok || s.last > 0 && revision.Number > s.last+state.MaxAhead {
			continue
		}

		if known, exists := s.known[revision.Number]; exists && known.Confirmed() {
			revision.Recall(known.ReleaseRevision)
		}

		s.statuses[revision.Number] = revision.Status
		s.stored[revision.Number] = revision.Stored
		s.secrets.versions[records[i].Name] = records[i].ResourceVersion
	}

	s.loaded = true
}

// Recall sets what is known of revisions. It must be called before Load.
func (s *Store) Recall(known []state.Revision) {
	s.known = make(map[int]state.Revision, len(known))
	for _, revision := range known {
		s.known[revision.Number] = revision
	}
}

// SetLast sets the number of the last revision that is known to have existed. The next one follows it, also if its
// record is gone, and records of other programs that are too far ahead are ignored. It must be called before Load.
func (s *Store) SetLast(number int) { s.last = number }

// Known returns what is known of a revision.
func (s *Store) Known(number int) state.Revision { return s.known[number] }

// LoadNone is Load for a release that is known to have no revisions. If it has got one meanwhile, Create fails.
func (s *Store) LoadNone() { s.loaded = true }

// Versions returns the resource versions of the Secrets that hold the release's revisions, as they were read or written
// last. It returns false if they are not known, for example because a write has failed.
func (s *Store) Versions() (versions []string, known bool) {
	return slices.Collect(maps.Values(s.secrets.versions)), s.loaded && !s.uncertain
}

// SetNewRevision sets what is recorded with the revision that the action creates. If the newest revision
// is an attempt at the same that failed for a passing reason, the action resumes it: it writes that
// revision again, so that the history does not fill with attempts that tell nothing.
func (s *Store) SetNewRevision(revision NewRevision) error {
	s.new = revision

	newest, status := s.Newest()
	known := s.known[newest]

	if status != v1alpha2.RevisionFailed || known.Failure != v1alpha2.FailureUnavailable ||
		known.ContentDigest != revision.Revision.ContentDigest || known.RollbackTo != revision.Revision.RollbackTo {
		return nil
	}

	rel, err := s.Find(newest)
	if err != nil || rel == nil || !isOwn(rel.Labels, newest) {
		return err
	}

	s.resumed = rel
	delete(s.statuses, newest)

	s.new.Revision.AdoptedVersion = known.AdoptedVersion

	return nil
}

// SetAnnounce sets what is called before the revision that the action creates is written.
func (s *Store) SetAnnounce(announce state.Announce) { s.new.Announce = announce }

// SetStaged sets that applying the given wave, the first one, does not complete the revision that the action creates.
func (s *Store) SetStaged(first waves.Place) {
	s.new.Revision.Wave = new(int(first))
}

// SetInventory sets the objects that the release may have once the revision that the action creates is announced.
func (s *Store) SetInventory(inventory []object.Key) { s.new.Inventory = inventory }

// SetAdoptedVersion sets the version that another program has installed. If the action resumes a revision, the first
// attempt may have changed that already: what was known then stays.
func (s *Store) SetAdoptedVersion(version string) {
	s.new.Revision.AdoptedVersion = cmp.Or(s.new.Revision.AdoptedVersion, version)
}

// newestFirst returns the numbers of the revisions.
func (s *Store) newestFirst() []int {
	numbers := slices.Sorted(maps.Keys(s.statuses))
	slices.Reverse(numbers)

	return numbers
}
