// Package storage reads and writes the Secrets in which Helm stores the revisions of a release.
// They stay readable to the helm programs; what Capstan needs to know of a revision is in their
// labels.
package storage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1api "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// maxDescription limits a revision's description in bytes.
const maxDescription = 1024

// Store is the storage driver of one action on one release. It writes the Secrets that Helm's own
// driver writes, with these differences:
//   - It reads the revisions once. Helm lists and decodes all of them three times in an upgrade.
//   - It keeps the errors of writes, most of which Helm ignores.
//   - It puts placeholders where a revision cannot be decoded. Helm would panic, or continue as if
//     there were none.
//   - A failed revision stays failed. Helm marks it superseded once a later one succeeds.
//   - It stores charts without their templates and files, which are never read again, because a
//     Secret holds only one megabyte.
type Store struct {
	driver.Driver

	secrets *secrets
	release types.NamespacedName
	outcome Outcome
	new     NewRevision
	chart   *helmchart.Chart // of the new revision

	revisions    map[int]*helmrelease.Release
	statuses     map[int]state.Status // as stored; Helm changes revisions before it writes them
	placeholders map[int]bool         // revisions that cannot be decoded
	unpruned     map[int]bool         // revisions after which objects are left to be deleted
	resumed      int                  // the revision that the action writes again; 0 for a new one
	protected    map[int]bool         // revisions that the history limit does not delete
	written      []int                // revisions, in the order of writes
	loaded       bool                 // Load has read all revisions
	err          error                // the first error of a write
}

// NewRevision is what Capstan records with the revision that an action creates.
type NewRevision struct {
	Labels Labels
	// Manifest replaces the one that Helm has taken from the target of a rollback, unless it is empty.
	Manifest string
	// Description replaces Helm's own, unless the action fails or it is empty.
	Description string
	// Announce is called before the revision is written; it may be nil.
	Announce state.Announce
}

// Outcome tells how an action has gone so far.
type Outcome struct {
	// Failure returns the kind of failure of the action, in case it fails.
	Failure func() state.Failure
	// Unpruned reports whether objects are left to be deleted, although the revision was applied.
	Unpruned func() bool
	// Adopted returns how many objects of the revision existed before and belonged to no release.
	Adopted func() int
}

// New returns the store for an action on a release.
func New(client corev1.SecretInterface, release types.NamespacedName, outcome Outcome) *Store {
	secrets := &secrets{SecretInterface: client, versions: map[string]Version{}}

	return &Store{
		Driver:       driver.NewSecrets(secrets),
		secrets:      secrets,
		release:      release,
		outcome:      outcome,
		revisions:    map[int]*helmrelease.Release{},
		statuses:     map[int]state.Status{},
		placeholders: map[int]bool{},
		unpruned:     map[int]bool{},
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

// LoadNone is Load for a release that is known to have no revisions. If it has got one meanwhile, Create fails.
func (s *Store) LoadNone() { s.loaded = true }

// Versions returns the versions of the Secrets that hold the release's revisions, by name, as they were read or written
// last. It returns false if they are not known, for example because a write has failed.
func (s *Store) Versions() (versions map[string]Version, known bool) {
	return s.secrets.versions, s.loaded && s.err == nil
}

// add adds the revision of a Secret, if it is one, and returns its size, compressed or in memory, whichever is larger.
// A revision that is larger than what is left counts as one that cannot be decoded.
func (s *Store) add(secret *corev1api.Secret, left int) (size int) {
	revision, ok := RevisionOf(&secret.ObjectMeta)
	if !ok {
		return 0
	}

	s.statuses[revision.Number] = revision.Status
	s.unpruned[revision.Number] = revision.Unpruned
	s.secrets.versions[secret.Name] = Version{secret.UID, secret.ResourceVersion}

	compressed := len(secret.Data["release"])
	if compressed > left {
		s.placeholders[revision.Number] = true
		return 0
	}

	rel, size, err := decode(secret, s.release.Name, revision.Number)
	if err != nil || size > left {
		s.placeholders[revision.Number] = true
		return compressed // decoding took its time
	}

	rel.Labels = customLabels(secret.Labels)
	s.revisions[revision.Number] = rel

	return max(size, compressed)
}

// addPlaceholders adds a failed revision for each that cannot be decoded, with the manifest of the
// revision before it: the best guess of what it left in the cluster.
func (s *Store) addPlaceholders() {
	for _, number := range slices.Sorted(maps.Keys(s.placeholders)) {
		manifest := ""

		for _, older := range s.newestFirst() {
			if older.Version < number {
				manifest = older.Manifest
				break
			}
		}

		s.revisions[number] = &helmrelease.Release{
			Name:      s.release.Name,
			Namespace: s.release.Namespace,
			Version:   number,
			Manifest:  manifest,
			Info:      &helmrelease.Info{Status: helmrelease.StatusFailed},
			Chart:     &helmchart.Chart{Metadata: &helmchart.Metadata{}},
		}
	}
}

// SetNewRevision sets what is recorded with the revision that the action creates. If the newest revision
// is an attempt at the same that failed for a passing reason, the action resumes it: it writes that
// revision again, so that the history does not fill with attempts that tell nothing.
func (s *Store) SetNewRevision(revision NewRevision) {
	s.new = revision

	newest, status := s.Newest()

	rel := s.Find(newest)
	if rel == nil || status != state.StatusFailed || !isOwn(rel.Labels, newest) ||
		rel.Labels[FailureLabel] != string(state.FailureUnavailable) ||
		!revision.Labels.sameAttempt(rel.Labels) {
		return
	}

	s.resumed = newest
	s.new.Labels.AdoptedVersion = rel.Labels[AdoptedVersionLabel]
	delete(s.revisions, newest)
}

// SetAnnounce sets what is called before the revision that the action creates is written.
func (s *Store) SetAnnounce(announce state.Announce) { s.new.Announce = announce }

// SetStaged records that applying the given wave, the first one, does not complete the revision that the action
// creates.
func (s *Store) SetStaged(first waves.Place) { s.new.Labels.Staged = first.Label() }

// SetAdoptedVersion records the version that another program has installed. If the action resumes a revision, the
// first attempt may have changed that already: what it has recorded stays.
func (s *Store) SetAdoptedVersion(version string) {
	s.new.Labels.AdoptedVersion = cmp.Or(s.new.Labels.AdoptedVersion, version)
}

// SetNewChart sets the chart that is stored with the revision that the action creates. The action's own
// has rendered files as templates.
func (s *Store) SetNewChart(chart *helmchart.Chart) { s.chart = chart }

// Query returns the revisions, only those with a status if the labels have one.
func (s *Store) Query(labels map[string]string) ([]*helmrelease.Release, error) {
	found := s.newestFirst()

	if status, ok := labels[statusLabel]; ok {
		found = slices.DeleteFunc(found, func(r *helmrelease.Release) bool { return r.Info.Status.String() != status })
	}

	if len(found) == 0 {
		return nil, driver.ErrReleaseNotFound
	}

	return found, nil
}

// Get returns the revision that is stored in the Secret of that name.
func (s *Store) Get(secret string) (*helmrelease.Release, error) {
	for number, rel := range s.revisions {
		if SecretName(s.release.Name, number) == secret {
			return rel, nil
		}
	}

	return nil, driver.ErrReleaseNotFound
}

func (s *Store) newestFirst() []*helmrelease.Release {
	return slices.SortedFunc(
		maps.Values(s.revisions),
		func(a, b *helmrelease.Release) int { return cmp.Compare(b.Version, a.Version) },
	)
}
