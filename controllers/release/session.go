package release

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// session is one action on one release.
type session struct {
	engine  *Engine
	release types.NamespacedName
	log     logr.Logger
	store   *storage.Store
	client  *cluster.Client
	// known are the objects that the release had before the action, and inventory those that it has, or may have, since;
	// nil if these are the same.
	known, inventory []object.Key
}

func (e *Engine) newSession(ctx context.Context, release types.NamespacedName) *session {
	return &session{
		engine:  e,
		release: release,
		log:     logr.FromContextOrDiscard(ctx),
		store:   storage.New(e.connection.Secrets.Secrets(release.Namespace), release),
		client:  e.newClient(ctx, release),
	}
}

// loadObserved reads the history, and fails if it has changed since the given revision was observed. If no revision
// was, it makes no request: the first one cannot be created twice.
func (s *session) loadObserved(ctx context.Context, revision state.Revision) error {
	if revision.Number == 0 {
		s.store.LoadNone()
		return nil
	}

	if err := s.loadNewest(ctx, revision); err != nil || !revision.Confirmed() {
		return err
	}

	return s.checkDigest(revision)
}

// loadNewest reads which revisions there are. The newest one must still be the one that was observed.
func (s *session) loadNewest(ctx context.Context, observed state.Revision) error {
	if err := s.load(ctx); err != nil {
		return err
	}

	if !s.store.Shows(observed) {
		s.remember() // what was observed is older than this

		return fmt.Errorf("release %s: %w", s.release, storage.ErrChanged)
	}

	return nil
}

// load reads which revisions there are.
func (s *session) load(ctx context.Context) error {
	records, err := ListRecords(ctx, s.engine.connection.Metadata, s.release)
	if err != nil {
		return fmt.Errorf("list the revisions of release %s: %w", s.release, err)
	}

	if err := storage.CheckRecords(s.release, records); err != nil {
		return err
	}

	s.store.Load(records)

	return nil
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

// rollback applies the manifest of an earlier revision.
func (s *session) rollback(ctx context.Context, options RollbackOptions, observed state.Observed) error {
	s.store.Recall(options.Known)
	s.store.SetLast(options.Last)

	if err := s.loadObserved(ctx, observed.Revision); err != nil {
		return err
	}

	number := options.Target.Number

	target, err := s.store.Find(number)
	if err != nil {
		return err
	}

	if target == nil {
		return noRevision(s.release, number, s.store.Numbers())
	}

	if err := s.checkDigest(options.Target); err != nil {
		return err
	}

	s.store.ProtectHealthy()
	s.store.Protect(number)

	objects, err := manifest.Decode(target.Manifest)
	if err != nil {
		return err
	}

	manifest.SetPaused(objects, options.Paused)

	text, err := manifest.Encode(objects)
	if err != nil {
		return err
	}

	known := s.store.Known(number)
	next := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			ContentDigest: known.ContentDigest, Version: target.Chart.Metadata.AppVersion,
			ChartDigest: known.ChartDigest, Paused: options.Paused, RollbackTo: number, Request: options.Request,
			Inputs: known.Inputs,
		},
	}

	switch {
	case options.Digest != "":
		next.ContentDigest = options.Digest
	case known.Paused != options.Paused:
		next.ContentDigest = pausedDigest(known.ContentDigest, options.Paused)
	}

	s.known = options.Inventory
	s.client.SetOwnKinds(options.Own)
	s.client.SetKnown(options.Inventory)

	err = s.store.SetNewRevision(storage.NewRevision{
		Revision: next, Owner: options.Owner, Salt: storage.SaltOf(target), Announce: options.Announce,
	})
	if err != nil {
		return err
	}

	if err := s.setRollbackTarget(objects, options.SkipUnknownKinds); err != nil {
		return err
	}

	if err := s.client.DryRunTarget(true); err != nil {
		return err
	}

	s.recordStages()

	if err := s.store.Settle(observed.Message); err != nil {
		return err
	}

	revision, err := s.store.Copy(target)
	if err != nil {
		return err
	}

	revision.Manifest = text

	description := fmt.Sprintf("Rollback to %d: %s", number, options.Reason)
	rollingBack := action{pending: helm.StatusPendingRollback, started: description, done: description}

	return s.perform(revision, rollingBack, options.HistoryLimit)
}

func (s *session) setRollbackTarget(objects []*unstructured.Unstructured, skipUnknownKinds bool) error {
	if skipUnknownKinds {
		return s.client.SetPartialTarget(objects)
	}

	return s.client.SetTarget(objects, func(schema.GroupKind) bool { return false })
}

// run runs an action on the release, unless another one is running.
func (s *session) run(action func(*session) error) (Result, error) {
	err := action(s)
	revision, status := s.store.LastWritten()

	s.remember()

	if written := s.store.Written(revision); written != nil {
		s.engine.keep(s.release, written, revision)
	}

	return Result{
		Revision: revision, Status: status, Inventory: s.inventory, Changes: s.client.Changes(),
	}, err
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
