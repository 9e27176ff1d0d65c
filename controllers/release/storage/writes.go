package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Create writes a new revision, with Capstan's labels.
func (s *Store) Create(secret string, rel *helmrelease.Release) error {
	rel.Labels = s.new.Labels.appliedTo(rel.Labels, rel.Version)
	rel.Labels[SaltLabel] = rand.Text()

	if s.new.Description != "" {
		rel.Info.Description = object.OneLine(s.new.Description, maxDescription)
	}

	if s.new.Manifest != "" {
		rel.Manifest = s.new.Manifest
	}

	if s.chart != nil {
		rel.Chart = s.chart
	}

	if err := s.announce(rel); err != nil {
		return err
	}

	if rel.Version == s.resumed {
		return s.write(secret, rel)
	}

	err := s.Driver.Create(secret, withoutFiles(rel))
	if errors.Is(err, driver.ErrReleaseExists) {
		err = fmt.Errorf("%w: the Secret exists; unless another program has just created it, "+
			"its labels are missing: delete it", ErrChanged)
	}

	if err != nil {
		return s.failed(secret, err)
	}

	s.wrote(rel)

	return nil
}

// announce announces a revision before it is written: a record that nothing else names proves nothing.
func (s *Store) announce(rel *helmrelease.Release) error {
	if s.new.Announce == nil {
		return nil
	}

	digest, err := Digest(rel, rel.Labels)
	if err != nil {
		return err
	}

	err = s.new.Announce(state.Announcement{
		Revision: rel.Version, Digest: digest, Status: state.Status(rel.Info.Status),
	})
	if err != nil {
		return fmt.Errorf("announce revision %d of release %s: %w", rel.Version, s.release, err)
	}

	return nil
}

// Update writes a revision that exists.
func (s *Store) Update(secret string, rel *helmrelease.Release) error {
	if s.placeholders[rel.Version] {
		return nil // the damaged record may be worth more than the placeholder
	}

	stored := s.statuses[rel.Version]

	if rel.Info.Status == helmrelease.StatusFailed && stored.Pending() {
		rel.Labels[FailureLabel] = string(s.outcome.Failure())
		s.keepReason(rel)
	}

	if rel.Info.Status == helmrelease.StatusDeployed && stored.Pending() && s.outcome.Unpruned() {
		rel.Labels[UnprunedLabel] = "true"
	}

	if adopted := s.outcome.Adopted(); adopted > 0 && stored.Pending() {
		rel.Labels[AdoptedLabel] = strconv.Itoa(adopted)
		rel.Info.Description += "; adopted " + object.Count(adopted, "existing object")
	}

	if rel.Info.Status == helmrelease.StatusSuperseded && stored == state.StatusFailed {
		rel.Info.Status = helmrelease.StatusFailed
	}

	return s.write(secret, rel)
}

// keepReason adds to the error of a failed rollback why the release was rolled back at all.
func (s *Store) keepReason(rel *helmrelease.Release) {
	if s.new.Description == "" {
		return
	}

	cause := strings.TrimPrefix(rel.Info.Description, fmt.Sprintf("Rollback %q failed: ", rel.Name))
	rel.Info.Description = object.OneLine(s.new.Description+"; the rollback failed: "+cause, maxDescription)
}

func (s *Store) write(secret string, rel *helmrelease.Release) error {
	if err := s.Driver.Update(secret, withoutFiles(rel)); err != nil {
		return s.failed(secret, err)
	}

	s.wrote(rel)

	return nil
}

// Delete deletes a revision. Protected revisions stay, although Helm considers them deleted.
func (s *Store) Delete(secret string) (*helmrelease.Release, error) {
	rel, err := s.Get(secret)
	if err != nil || s.protected[rel.Version] {
		return rel, err
	}

	err = s.secrets.Delete(context.Background(), secret, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, s.failed(secret, err)
	}

	delete(s.revisions, rel.Version)
	delete(s.statuses, rel.Version)

	return rel, nil
}

func (s *Store) wrote(rel *helmrelease.Release) {
	s.revisions[rel.Version] = rel
	s.statuses[rel.Version] = state.Status(rel.Info.Status)
	s.written = append(s.written, rel.Version)
}

// failed keeps the first error of a write.
func (s *Store) failed(secret string, err error) error {
	if apierrors.IsConflict(err) {
		err = fmt.Errorf("%w: another process has written the record since", ErrChanged)
	}

	err = NewError(s.release.Namespace+"/"+secret, err)
	if s.err == nil {
		s.err = err
	}

	return err
}

// withoutFiles returns a copy of the revision whose chart has no templates and files.
func withoutFiles(rel *helmrelease.Release) *helmrelease.Release {
	stored := *rel
	if c := rel.Chart; c != nil {
		stored.Chart = &helmchart.Chart{Metadata: c.Metadata, Lock: c.Lock, Values: c.Values, Schema: c.Schema}
	}

	return &stored
}
