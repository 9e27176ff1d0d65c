package release

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// session is one action on one release.
type session struct {
	engine  *Engine
	release types.NamespacedName
	log     logr.Logger
	memory  state.Memory
	store   *storage.Store
	client  *apply.Client
}

// open begins an action on a release, whose newest revision must still be the one that was observed. If none was, it
// makes no request: the first revision cannot be created twice.
func (e *Engine) open(
	ctx context.Context, release types.NamespacedName, memory state.Memory, observed state.Revision,
) (*session, error) {
	var (
		records []metav1.PartialObjectMetadata
		err     error
	)

	if observed.Number != 0 {
		if records, err = ListRecords(ctx, e.connection.Metadata, release); err != nil {
			return nil, fmt.Errorf("list the revisions of release %s: %w", release, err)
		}
	}

	if err := storage.CheckRecords(release, records); err != nil {
		return nil, err
	}

	s := &session{
		engine:  e,
		release: release,
		log:     logr.FromContextOrDiscard(ctx),
		memory:  memory,
		store:   storage.New(e.connection.Secrets.Secrets(release.Namespace), release, memory, records),
		client:  e.newClient(ctx, release, memory),
	}

	if !s.store.Shows(observed) {
		s.remember() // what was observed is older than this

		return nil, fmt.Errorf("release %s: %w", release, storage.ErrChanged)
	}

	return s, nil
}

// begun returns the number of the revision whose action this process has begun, without recording its end; 0 for none.
func (s *session) begun() int {
	number, _ := s.engine.begun.Load(s.release)
	begun, _ := number.(int)

	return begun
}

// openConfirmed is like open, but reads the observed revision, if that is confirmed: its record must still be the one
// that is known.
func (e *Engine) openConfirmed(
	ctx context.Context, release types.NamespacedName, memory state.Memory, observed state.Revision,
) (*session, error) {
	s, err := e.open(ctx, release, memory, observed)
	if err != nil || !observed.Confirmed() {
		return s, err
	}

	return s, s.checkDigest(observed)
}

// checkDigest makes sure that a record, which was just read, is the one that is confirmed. What cannot be decoded has
// no content to act on.
func (s *session) checkDigest(known state.Revision) error {
	rel, err := s.store.Find(known.Number)
	if err != nil || rel == nil {
		return err
	}

	digest, err := storage.Digest(rel)
	if err != nil || known.Confirms(digest) {
		return err
	}

	return Unconfirmed(s.release, known.Number, 0)
}

// find returns the record of a revision, which must be readable.
func (s *session) find(revision state.Revision) (*helm.Release, error) {
	rel, err := s.store.Find(revision.Number)
	if err == nil && rel == nil {
		err = fmt.Errorf("revision %d of release %s cannot be read: %w", revision.Number, s.release, storage.ErrChanged)
	}

	return rel, err
}

// objectsOf returns the objects of a revision; none if its record cannot be decoded.
func (s *session) objectsOf(revision state.Revision) ([]*unstructured.Unstructured, error) {
	record, err := s.store.Find(revision.Number)
	if err != nil || record == nil {
		return nil, err
	}

	return manifest.Decode(record.Manifest)
}

// run runs an action, and adds to its result what it has written.
func (s *session) run(action func() (Result, error)) (Result, error) {
	result, err := action()
	result.Revision, result.Status = s.store.LastWritten()

	s.remember()

	if written := s.store.Written(result.Revision); written != nil {
		s.engine.keep(s.release, written, result.Revision)
	}

	return result, err
}

// remember notes what the action has left in storage, so that no older history is observed.
func (s *session) remember() {
	versions, known := s.store.Versions()
	if !known {
		s.engine.written.Note(s.release, "")
		return
	}

	s.engine.written.Note(s.release, consistency.Newest(versions))
}
