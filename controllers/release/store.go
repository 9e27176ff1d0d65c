package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// store is Helm's storage of one release during one action. It writes what Helm's own driver
// writes, where that writes it, but
//   - lists the revisions once, where Helm lists and decodes them all three times in an upgrade;
//   - keeps the truth about what was written, which an action's return value does not tell;
//   - stands in for a record that cannot be decoded, where Helm panics or goes on as if there were none;
//   - leaves a failed revision failed, where Helm calls it superseded once a later one succeeds;
//   - keeps templates and files of the chart out of the record: nothing reads them there, and a Secret holds one megabyte.
type store struct {
	driver.Driver
	secrets         corev1.SecretInterface
	namespace, name string
	stamp           stamp
	// description replaces Helm's own on the revision that the action makes, unless it fails; empty
	// leaves it.
	description string
	// failure tells what the action has met so far.
	failure func() Failure
	// kept are revisions that pruning of the history leaves.
	kept map[int]bool

	revisions map[int]*helmrelease.Release
	stored    map[int]Status // what the Secrets say; Helm changes revisions before it writes them
	standIns  map[int]bool   // revisions whose records cannot be decoded
	attempts  []string       // manifests that were applied in part, at most; see load
	written   []int          // revisions, in the order of writes
	err       error          // the first that a write met
}

func newStore(secrets corev1.SecretInterface, namespace, name string) *store {
	return &store{
		Driver:    driver.NewSecrets(secrets),
		secrets:   secrets,
		namespace: namespace,
		name:      name,
		revisions: map[int]*helmrelease.Release{},
		stored:    map[int]Status{},
		standIns:  map[int]bool{},
	}
}

// load reads the revisions.
func (s *store) load(ctx context.Context) error {
	list, err := s.secrets.List(ctx, metav1.ListOptions{LabelSelector: ownerSelector(s.name)})
	if err != nil {
		return fmt.Errorf("list the revisions of release %s/%s: %w", s.namespace, s.name, err)
	}

	for i := range list.Items {
		secret := &list.Items[i]

		revision, ok := revisionOf(&secret.ObjectMeta)
		if !ok {
			continue
		}

		s.stored[revision.Number] = revision.Status

		rel, err := decodeRelease(secret.Data["release"], s.name, revision.Number)
		if err != nil {
			s.standIns[revision.Number] = true
			continue
		}

		rel.Labels = customLabels(secret.Labels)
		s.revisions[revision.Number] = rel
	}

	s.standIn()
	s.findAttempts()

	return nil
}

// standIn puts a failed revision in the place of each that cannot be decoded, with the objects of
// the newest before it that can: the best that is known of what it left in the cluster.
func (s *store) standIn() {
	for _, number := range slices.Sorted(maps.Keys(s.standIns)) {
		manifest := ""

		for _, older := range s.newestFirst() {
			if older.Version < number {
				manifest = older.Manifest
				break
			}
		}

		s.revisions[number] = &helmrelease.Release{
			Name: s.name, Namespace: s.namespace, Version: number, Manifest: manifest,
			Info:  &helmrelease.Info{Status: helmrelease.StatusFailed},
			Chart: &helmchart.Chart{Metadata: &helmchart.Metadata{}},
		}
	}
}

// findAttempts collects the manifests of the newest revisions that did not come to an end, down to
// the last one that did. Helm looks at one of them only, so objects that another brought, or would
// have pruned, would stay behind for ever.
func (s *store) findAttempts() {
	var attempts []string
	for _, rel := range s.newestFirst() {
		attempts = append(attempts, rel.Manifest)
		if status := s.stored[rel.Version]; !s.standIns[rel.Version] &&
			(status == StatusDeployed || status == StatusSuperseded) {
			break
		}
	}

	if len(attempts) > 1 {
		s.attempts = attempts
	}
}

// keepHealthy protects the newest revision that was healthy from the limit of the history: it is
// what can be returned to.
func (s *store) keepHealthy() {
	s.kept = map[int]bool{}
	for _, rel := range s.newestFirst() {
		if status := s.stored[rel.Version]; ownLabels(rel) && rel.Labels[HealthyLabel] == "true" &&
			(status == StatusDeployed || status == StatusSuperseded) {
			s.kept[rel.Version] = true
			return
		}
	}
}

// readable are the numbers of the revisions that can be read, oldest first.
func (s *store) readable() []int {
	numbers := slices.Sorted(maps.Keys(s.revisions))
	return slices.DeleteFunc(numbers, func(n int) bool { return s.standIns[n] })
}

// stampOf is what a revision was stamped with; what it was made from stays unknown if another
// program made it.
func (s *store) stampOf(rel *helmrelease.Release) stamp {
	made := stamp{}
	if rel.Chart != nil && rel.Chart.Metadata != nil {
		made.version = rel.Chart.Metadata.AppVersion
	}

	if ownLabels(rel) {
		made.digest, made.chartDigest = rel.Labels[v1alpha2.DigestLabel], decodeDigest(rel.Labels[ChartDigestLabel])
	}

	return made
}

// ownLabels reports whether a revision's labels are its own, see RevisionLabel.
func ownLabels(rel *helmrelease.Release) bool {
	return rel.Labels[RevisionLabel] == strconv.Itoa(rel.Version)
}

func (s *store) newestFirst() []*helmrelease.Release {
	return slices.SortedFunc(
		maps.Values(s.revisions),
		func(a, b *helmrelease.Release) int { return cmp.Compare(b.Version, a.Version) },
	)
}

// newest is the newest revision and its status in storage; nil if there is none.
func (s *store) newest() (*helmrelease.Release, Status) {
	all := s.newestFirst()
	if len(all) == 0 {
		return nil, ""
	}

	return all[0], s.stored[all[0].Version]
}

// Query returns the revisions, of a status if the labels have one.
func (s *store) Query(labels map[string]string) ([]*helmrelease.Release, error) {
	found := s.newestFirst()
	if status, ok := labels["status"]; ok {
		found = slices.DeleteFunc(found, func(r *helmrelease.Release) bool { return r.Info.Status.String() != status })
	}

	if len(found) == 0 {
		return nil, driver.ErrReleaseNotFound
	}

	return found, nil
}

// Get returns the revision that a Secret's name stands for.
func (s *store) Get(key string) (*helmrelease.Release, error) {
	for number, rel := range s.revisions {
		if secretName(s.name, number) == key {
			return rel, nil
		}
	}

	return nil, driver.ErrReleaseNotFound
}

// Create writes a new revision, stamped.
func (s *store) Create(key string, rel *helmrelease.Release) error {
	rel.Labels = s.stamp.on(rel.Labels, rel.Version)
	if s.description != "" {
		rel.Info.Description = s.description
	}

	if err := s.Driver.Create(key, slim(rel)); err != nil {
		if errors.Is(err, driver.ErrReleaseExists) {
			err = fmt.Errorf(
				"%w: it exists; unless another program has just made it, it has lost its labels, and deleting it helps",
				ErrChanged,
			)
		}

		return s.failed(key, err)
	}

	s.wrote(rel)

	return nil
}

// Update writes a revision anew.
func (s *store) Update(key string, rel *helmrelease.Release) error {
	if s.standIns[rel.Version] {
		return nil // whatever is in it may be worth more than what would be written
	}

	if rel.Info.Status == helmrelease.StatusFailed && s.stored[rel.Version].Pending() && s.failure != nil {
		rel.Labels[FailureLabel] = string(s.failure())
	}

	if s.stored[rel.Version] == StatusFailed && rel.Info.Status == helmrelease.StatusSuperseded {
		rel.Info.Status = helmrelease.StatusFailed
	}

	if err := s.Driver.Update(key, slim(rel)); err != nil {
		return s.failed(key, err)
	}

	s.wrote(rel)

	return nil
}

// Delete removes a revision; one that is gone is fine. One that is to be kept outlives the limit of
// the history.
func (s *store) Delete(key string) (*helmrelease.Release, error) {
	rel, err := s.Get(key)
	if err != nil || s.kept[rel.Version] {
		return rel, err
	}

	err = s.secrets.Delete(context.Background(), key, metav1.DeleteOptions{})
	if err != nil && !isGone(err) {
		return nil, s.failed(key, err)
	}

	delete(s.revisions, rel.Version)
	delete(s.stored, rel.Version)

	return rel, nil
}

// settle marks the newest revision failed if its action is over though storage does not say so:
// whoever was at work is gone, or Decide would have said otherwise. An upgrade or a rollback can
// follow.
func (s *store) settle(why string) error {
	rel, status := s.newest()
	switch status {
	case StatusDeployed, StatusSuperseded, StatusFailed:
		return nil
	}

	if s.standIns[rel.Version] {
		return nil
	}

	rel.SetStatus(helmrelease.StatusFailed, why)

	if ownLabels(rel) {
		rel.Labels[FailureLabel] = string(Interrupted)
	}

	return s.Update(secretName(s.name, rel.Version), rel)
}

func (s *store) wrote(rel *helmrelease.Release) {
	s.revisions[rel.Version] = rel
	s.stored[rel.Version] = Status(rel.Info.Status)
	s.written = append(s.written, rel.Version)
}

// failed keeps the first error of a write: Helm ignores most of them.
func (s *store) failed(key string, err error) error {
	err = &StorageError{Record: s.namespace + "/" + key, Reason: reasonOf("Secret", err), cause: err}
	if s.err == nil {
		s.err = err
	}

	return err
}

// outcome is the newest revision that was written and its status; zero if none was.
func (s *store) outcome() (int, Status) {
	if len(s.written) == 0 {
		return 0, ""
	}

	newest := slices.Max(s.written)

	return newest, s.stored[newest]
}

// slim is the revision without what nobody reads in storage.
func slim(rel *helmrelease.Release) *helmrelease.Release {
	slim := *rel
	if c := rel.Chart; c != nil {
		slim.Chart = &helmchart.Chart{Metadata: c.Metadata, Lock: c.Lock, Values: c.Values, Schema: c.Schema}
	}

	return &slim
}

// customLabels are the labels of a Secret that are not Helm's own.
func customLabels(labels map[string]string) map[string]string {
	custom := maps.Clone(labels)
	maps.DeleteFunc(custom, func(key, _ string) bool { return slices.Contains(driver.GetSystemLabels(), key) })

	return custom
}
