// Package storage reads and writes the Secrets in which Helm stores the revisions of a release.
// They stay readable to the helm programs. What Capstan has to know of a revision is not there, but in the status of
// the resource.
package storage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1api "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// maxDescription limits a revision's description in bytes.
const maxDescription = 1024

// Store has the revisions of one release during one action, and writes them as Helm does, with these differences:
//   - It puts placeholders where a revision cannot be decoded. Helm would panic, or continue as if
//     there were none.
//   - A failed revision stays failed. Helm marks it superseded once a later one succeeds.
//   - It stores charts without their templates and files, which are never read again, because a
//     Secret holds only one megabyte.
type Store struct {
	secrets *secrets
	release types.NamespacedName
	new     NewRevision

	revisions    map[int]*helm.Release
	statuses     map[int]state.Status   // as stored
	placeholders map[int]bool           // revisions that cannot be decoded
	known        map[int]state.Revision // what the caller knows of revisions
	last         int                    // the last revision that the caller knows to have existed; 0 for none
	resumed      *helm.Release          // the revision that the action writes again; nil for a new one
	created      state.Revision         // the revision that the action has created
	protected    map[int]bool           // revisions that the history limit does not delete
	written      []int                  // revisions, in the order of writes
	loaded       bool                   // Load has read all revisions
	uncertain    bool                   // a write has failed, so what is stored is unknown
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
	Failure state.Failure
	// Description for Helm's history.
	Description string
	// Adopted is how many objects of the revision existed before and belonged to no release.
	Adopted int
}

// New returns the store for an action on a release.
func New(client corev1.SecretInterface, release types.NamespacedName) *Store {
	return &Store{
		secrets:      &secrets{SecretInterface: client, versions: map[string]string{}, read: map[string][]byte{}},
		release:      release,
		revisions:    map[int]*helm.Release{},
		statuses:     map[int]state.Status{},
		placeholders: map[int]bool{},
		protected:    map[int]bool{},
	}
}

// Load reads the revisions, a few at a time: a user who may write Secrets in the namespace can add
// records of a megabyte.
func (s *Store) Load(ctx context.Context) error {
	const pageSize = 10 // a response of a remote cluster may have 16 MiB

	left := maxTotal
	options := metav1.ListOptions{LabelSelector: Selector(s.release.Name), Limit: pageSize}

	for {
		page, err := s.secrets.List(ctx, options)
		if err != nil {
			return fmt.Errorf("list the revisions of release %s: %w", s.release, err)
		}

		for i := range page.Items {
			left -= s.add(&page.Items[i], left)
		}

		if len(s.statuses) > MaxRecords {
			return &ExcessError{Message: tooManyRecords(s.release)}
		}

		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}

	s.addPlaceholders()
	s.loaded = true

	return nil
}

// Recall sets what is known of revisions.
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

// add adds the revision of a Secret, if it is one, and returns its size in memory, where it is kept compressed, too.
// A revision that is larger than what is left counts as one that cannot be decoded.
func (s *Store) add(secret *corev1api.Secret, left int) (size int) {
	revision, ok := RevisionOf(&secret.ObjectMeta)
	if !ok || s.last > 0 && revision.Number > s.last+state.MaxAhead {
		return 0
	}

	s.statuses[revision.Number] = revision.Status
	s.secrets.versions[secret.Name] = secret.ResourceVersion

	compressed := len(secret.Data[recordKey])
	if compressed > left {
		s.placeholders[revision.Number] = true
		return 0
	}

	rel, size, err := decode(secret, s.release.Name, revision.Number)
	if err != nil || size+compressed > left {
		s.placeholders[revision.Number] = true
		return compressed // decoding took its time
	}

	rel.Labels = customLabels(secret.Labels)
	s.revisions[revision.Number] = rel
	s.secrets.read[secret.Name] = secret.Data[recordKey]

	return size + compressed
}

// addPlaceholders adds a failed revision for each that cannot be decoded.
func (s *Store) addPlaceholders() {
	for number := range s.placeholders {
		s.revisions[number] = &helm.Release{
			Name:      s.release.Name,
			Namespace: s.release.Namespace,
			Version:   number,
			Info:      &helm.Info{Status: helm.StatusFailed},
			Chart:     &helm.Chart{Metadata: &helm.Metadata{}},
		}
	}
}

// SetNewRevision sets what is recorded with the revision that the action creates. If the newest revision
// is an attempt at the same that failed for a passing reason, the action resumes it: it writes that
// revision again, so that the history does not fill with attempts that tell nothing.
func (s *Store) SetNewRevision(revision NewRevision) {
	s.new = revision

	newest, status := s.Newest()
	known := s.known[newest]

	rel := s.Find(newest)
	if rel == nil || status != state.StatusFailed || !isOwn(rel.Labels, newest) ||
		known.Failure != state.FailureUnavailable ||
		known.Digest != revision.Revision.Digest || known.RollbackTo != revision.Revision.RollbackTo {
		return
	}

	s.resumed = rel
	s.new.Revision.AdoptedVersion = known.AdoptedVersion
	delete(s.revisions, newest)
}

// SetAnnounce sets what is called before the revision that the action creates is written.
func (s *Store) SetAnnounce(announce state.Announce) { s.new.Announce = announce }

// SetStaged sets that applying the given wave, the first one, does not complete the revision that the action creates.
func (s *Store) SetStaged(first waves.Place) {
	s.new.Revision.Staged, s.new.Revision.Wave = true, int(first)
}

// SetInventory sets the objects that the release may have once the revision that the action creates is announced.
func (s *Store) SetInventory(inventory []object.Key) { s.new.Inventory = inventory }

// SetAdoptedVersion sets the version that another program has installed. If the action resumes a revision, the first
// attempt may have changed that already: what was known then stays.
func (s *Store) SetAdoptedVersion(version string) {
	s.new.Revision.AdoptedVersion = cmp.Or(s.new.Revision.AdoptedVersion, version)
}

func (s *Store) newestFirst() []*helm.Release {
	return slices.SortedFunc(
		maps.Values(s.revisions),
		func(a, b *helm.Release) int { return cmp.Compare(b.Version, a.Version) },
	)
}
