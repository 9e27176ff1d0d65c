package release

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/action"
	helmstorage "helm.sh/helm/v3/pkg/storage"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/manifest"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// session is one action on one release: Helm's action, with Capstan's storage and Kubernetes
// client.
type session struct {
	engine   *Engine
	release  types.NamespacedName
	log      logr.Logger
	store    *storage.Store
	client   *cluster.Client
	rendered bool // the chart could be rendered, to valid objects
}

func (e *Engine) newSession(ctx context.Context, release types.NamespacedName) *session {
	s := &session{
		engine:  e,
		release: release,
		log:     logr.FromContextOrDiscard(ctx),
		client:  e.newClient(ctx, release),
	}
	outcome := storage.Outcome{Failure: s.failure, Unpruned: s.client.Unpruned, Adopted: s.client.Adopted}
	s.store = storage.New(e.secrets.Secrets(release.Namespace), release, outcome)

	return s
}

// load reads the history and returns the configuration that all of Helm's actions need.
func (s *session) load(ctx context.Context) (*action.Configuration, error) {
	if err := s.store.Load(ctx); err != nil {
		return nil, err
	}

	return s.configure()
}

// configure returns the configuration that all of Helm's actions need, once the history is known.
func (s *session) configure() (*action.Configuration, error) {
	s.client.SetIncomplete(s.store.IncompleteManifests())

	capabilities, err := s.engine.connection.Capabilities()
	if err != nil {
		return nil, err
	}

	return &action.Configuration{
		RESTClientGetter: s.engine.connection,
		Releases:         helmstorage.Init(s.store),
		KubeClient:       s.client,
		Capabilities:     capabilities,
		Log:              helmLog(s.log),
		HookOutputFunc:   func(string, string, string) io.Writer { return io.Discard },
	}, nil
}

// loadObserved is load, but fails if the history has changed since the given revision was observed. If no revision was,
// it makes no request: the first one cannot be created twice.
func (s *session) loadObserved(ctx context.Context, revision state.Revision) (*action.Configuration, error) {
	if revision.Number == 0 {
		s.store.LoadNone()
		return s.configure()
	}

	config, err := s.load(ctx)
	if err != nil {
		return nil, err
	}

	newest, status := s.store.Newest()
	if newest != revision.Number || status != revision.Status {
		s.remember() // what was observed is older than this

		return nil, fmt.Errorf("release %s: %w", s.release, storage.ErrChanged)
	}

	return config, nil
}

// rollback applies the manifest of an earlier revision.
func (s *session) rollback(ctx context.Context, options RollbackOptions, observed state.Observed) error {
	config, err := s.loadObserved(ctx, observed.Revision)
	if err != nil {
		return err
	}

	target := s.store.Find(options.Revision)
	if target == nil {
		return &NoRevisionError{
			Release:  s.release.String(),
			Revision: options.Revision,
			Present:  s.store.Readable(),
		}
	}

	s.store.ProtectHealthy()
	s.store.Protect(options.Revision)

	manifest, err := postRender(options.PostRenderer, bytes.NewBufferString(target.Manifest))
	if err != nil {
		return fmt.Errorf("release %s: change the manifest of revision %d: %w", s.release, options.Revision, err)
	}

	labels := storage.LabelsOf(target)
	labels.Holder = s.engine.options.Holder
	labels.RollbackTo = options.Revision
	labels.Paused = options.Paused
	labels.Request = options.Request
	labels.Owner = options.Owner

	switch {
	case options.Digest != "":
		labels.Digest = options.Digest
	case manifest.String() != target.Manifest:
		labels.Digest = postRenderedDigest(labels.Digest, options.PostRenderer.Digest())
	}

	s.client.SetOwnKinds(options.Own)
	s.store.SetNewRevision(storage.NewRevision{
		Labels:      labels,
		Manifest:    manifest.String(),
		Description: fmt.Sprintf("Rollback to %d: %s", options.Revision, options.Reason),
		Announce:    options.Announce,
	})

	if err := s.setRollbackTarget(manifest.String(), options); err != nil {
		return s.explain(err, Spec{})
	}

	if err := s.client.DryRunTarget(s.store.CurrentManifests(), true); err != nil {
		return s.explain(err, Spec{})
	}

	if err := s.recordStages(); err != nil {
		return s.explain(err, Spec{})
	}

	if err := s.store.FailInterrupted(observed.Message); err != nil {
		return err
	}

	rollback := action.NewRollback(config)
	rollback.Version = options.Revision
	rollback.MaxHistory = historyLimit(options.HistoryLimit)
	rollback.Timeout = s.engine.options.HookTimeout

	return s.explain(rollback.Run(s.release.Name), Spec{})
}

func (s *session) setRollbackTarget(content string, options RollbackOptions) error {
	objects, err := manifest.Decode(content)
	if err != nil {
		return err
	}

	if options.SkipUnknownKinds {
		return s.client.SetPartialTarget(content, objects)
	}

	return s.client.SetTarget(content, objects, func(schema.GroupKind) bool { return false })
}

// uninstall deletes the release.
func (s *session) uninstall(ctx context.Context, options cluster.RemoveOptions) error {
	config, err := s.load(ctx)
	if err != nil {
		return err
	}

	newest, _ := s.store.Newest()
	if newest == 0 {
		return nil
	}

	if len(s.store.Readable()) == 0 {
		return &storage.CorruptError{
			Secret: s.release.Namespace + "/" + storage.SecretName(s.release.Name, newest),
			Reason: "nor can an older one, so the objects to delete are unknown",
		}
	}

	if !options.AtOnce {
		s.client.SetOwnKinds(options.Own)

		if err := s.client.RemoveFirst(s.store.CurrentManifests()); err != nil {
			return err
		}
	}

	uninstall := action.NewUninstall(config)
	uninstall.Timeout = s.engine.options.HookTimeout

	_, err = uninstall.Run(s.release.Name)

	return s.explain(err, Spec{})
}

// run runs an action on the release, unless another one is running.
func (s *session) run(action func(*session) error) (Result, error) {
	unlock, err := s.engine.lock(s.release)
	if err != nil {
		return Result{}, err
	}
	defer unlock()

	err = action(s)
	revision, status := s.store.LastWritten()

	s.remember()

	return Result{Revision: revision, Status: status, Changes: s.client.Changes()}, err
}

// remember keeps what the action has read from storage and left there in memory, so that it is not read again.
func (s *session) remember() {
	versions, known := s.store.Versions()
	if !known {
		s.engine.seen.Forget(s.release)
		return
	}

	seen := map[string]string{}
	for name, version := range versions {
		seen[name] = version.ResourceVersion
	}

	s.engine.seen.Set(s.release, seen)

	newest, _ := s.store.LastWritten()
	if rel := s.store.Find(newest); rel != nil {
		s.engine.keep(s.release, rel, versions[storage.SecretName(s.release.Name, newest)])
	}
}
