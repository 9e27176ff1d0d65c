package release

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// RollbackOptions are the options of a rollback.
type RollbackOptions struct {
	// Target is the revision to roll back to.
	Target state.Revision
	// Digest of the desired state that the rollback represents. Default: that of the revision, so
	// that the release is in sync with what was desired then, unless Paused changes it.
	Digest string
	// Paused scales the Deployments of the revision to zero; otherwise they get their usual replicas.
	Paused bool
	// Reason for the history.
	Reason string
	// HistoryLimit is the same as in Spec.
	HistoryLimit int
	// Request that the rollback results from; zero if it was not requested.
	Request v1alpha2.RevisionRequest
	// SkipUnknownKinds leaves out the objects whose kinds the API server does not serve, instead of
	// failing with a *apply.UnknownKindError.
	SkipUnknownKinds bool
}

// Rollback applies the objects of an earlier revision, by a new revision. Objects that later
// revisions have added are deleted, those that they dropped are recreated. It does not touch CRDs
// and the history. Otherwise it is like Prepare and Prepared.Apply; a revision that does not exist is a
// *problem.Error.
func (e *Engine) Rollback(
	ctx context.Context,
	release types.NamespacedName,
	memory state.Memory,
	options RollbackOptions,
	observed state.Observed,
) (Result, error) {
	if observed.State == state.Locked {
		return Result{}, locked(observed)
	}

	s, err := e.openConfirmed(ctx, release, memory, observed.Revision)
	if err != nil {
		return Result{}, err
	}

	return s.run(func() (Result, error) { return s.rollback(ctx, options, observed) })
}

// rollback applies the manifest of an earlier revision.
func (s *session) rollback(ctx context.Context, options RollbackOptions, observed state.Observed) (Result, error) {
	number := options.Target.Number

	target, err := s.store.Find(number)
	if err != nil {
		return Result{}, err
	}

	if target == nil {
		return Result{}, noRevision(s.release, number, s.store.Numbers())
	}

	if err := s.checkDigest(options.Target); err != nil {
		return Result{}, err
	}

	objects, err := manifest.Decode(target.Manifest)
	if err != nil {
		return Result{}, err
	}

	manifest.SetPaused(objects, options.Paused)

	text, err := manifest.Encode(objects)
	if err != nil {
		return Result{}, err
	}

	next, err := s.store.Next(s.rollbackRevision(target, options), storage.SaltOf(target), s.begun())
	if err != nil {
		return Result{}, err
	}

	draft, err := s.client.Read(apply.Target{Objects: objects, Partial: options.SkipUnknownKinds})
	if err != nil {
		return Result{}, err
	}

	if err := draft.DryRun(true); err != nil {
		return Result{}, err
	}

	set, err := draft.Complete()
	if err != nil {
		return Result{}, err
	}

	if err := s.store.Settle(observed.Message); err != nil {
		return Result{}, err
	}

	record, err := s.store.Copy(target, next.Number)
	if err != nil {
		return Result{}, err
	}

	record.Manifest = text

	description := fmt.Sprintf("Rollback to %d: %s", number, options.Reason)

	return s.perform(ctx, attempt{
		next: next, record: record, set: set, limit: options.HistoryLimit, kept: number,
		action: action{pending: helm.StatusPendingRollback, started: description, done: description},
	})
}

// rollbackRevision returns what is known of the revision that a rollback to a record creates.
func (s *session) rollbackRevision(target *helm.Release, options RollbackOptions) state.Revision {
	known := s.memory.Of(options.Target.Number)
	next := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			ContentDigest: known.ContentDigest, Version: target.Chart.Metadata.AppVersion,
			ChartDigest: known.ChartDigest, Paused: options.Paused, RollbackTo: options.Target.Number,
			Request: options.Request, Inputs: known.Inputs,
		},
	}

	switch {
	case options.Digest != "":
		next.ContentDigest = options.Digest
	case known.Paused != options.Paused:
		next.ContentDigest = pausedDigest(known.ContentDigest, options.Paused)
	}

	return next
}
