package release

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helmstorage "helm.sh/helm/v3/pkg/storage"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// session is one action on one release: Helm's action, with Capstan's storage and Kubernetes
// client.
type session struct {
	engine       *Engine
	release      types.NamespacedName
	log          logr.Logger
	store        *storage.Store
	client       *cluster.Client
	postRenderer PostRenderer
	rendered     bool // Helm has rendered the chart, and all objects can be applied
}

func (e *Engine) newSession(ctx context.Context, release types.NamespacedName) *session {
	s := &session{
		engine:  e,
		release: release,
		log:     logr.FromContextOrDiscard(ctx),
		client:  e.newClient(ctx, release),
	}
	outcome := storage.Outcome{Failure: s.failure, Unpruned: s.client.Unpruned}
	s.store = storage.New(e.secrets.Secrets(release.Namespace), release, outcome)

	return s
}

// load reads the history and returns the configuration that all of Helm's actions need.
func (s *session) load(ctx context.Context) (*action.Configuration, error) {
	if err := s.store.Load(ctx); err != nil {
		return nil, err
	}

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

// loadObserved is load, but fails if the history has changed since the given revision was observed.
func (s *session) loadObserved(ctx context.Context, revision state.Revision) (*action.Configuration, error) {
	config, err := s.load(ctx)
	if err != nil {
		return nil, err
	}

	newest, status := s.store.Newest()
	if newest != revision.Number || status != revision.Status {
		return nil, fmt.Errorf("release %s: %w", s.release, ErrChanged)
	}

	return config, nil
}

// apply installs or upgrades the release.
func (s *session) apply(ctx context.Context, spec Spec, observed state.Observed) error {
	config, err := s.loadObserved(ctx, observed.Revision)
	if err != nil {
		return err
	}

	s.store.ProtectHealthy()

	labels, err := s.engine.labels(spec)
	if err != nil {
		return err
	}

	s.client.SetOwnKinds(spec.Own)
	s.store.SetNewRevision(storage.NewRevision{Labels: labels})
	s.postRenderer = spec.PostRenderer

	options := chartutil.ReleaseOptions{Revision: 1, IsInstall: true}
	if newest, status := s.store.Newest(); newest > 0 && status != state.StatusUninstalled {
		options = chartutil.ReleaseOptions{Revision: newest + 1, IsUpgrade: true}
	}

	chart, err := s.renderChart(ctx, spec, options, config.Capabilities)
	if err != nil {
		return err
	}

	if options.IsInstall {
		return s.explain(s.install(config, chart, spec), spec)
	}

	if err := s.store.FailInterrupted(observed.Message); err != nil {
		return s.explain(err, spec)
	}

	return s.explain(s.upgrade(config, chart, spec), spec)
}

func (s *session) install(config *action.Configuration, chart *helmchart.Chart, spec Spec) error {
	config.Releases.MaxHistory = historyLimit(spec.HistoryLimit)

	install := action.NewInstall(config)
	install.Namespace = s.release.Namespace
	install.ReleaseName = s.release.Name
	install.Replace = true // a history that an uninstall has kept
	install.SkipCRDs = true
	install.TakeOwnership = true
	install.DisableOpenAPIValidation = true
	install.Timeout = s.engine.options.HookTimeout
	install.PostRenderer = s

	_, err := install.Run(chart, spec.values())

	return err
}

func (s *session) upgrade(config *action.Configuration, chart *helmchart.Chart, spec Spec) error {
	upgrade := action.NewUpgrade(config)
	upgrade.Namespace = s.release.Namespace
	upgrade.ResetValues = true // otherwise empty values would mean those of the revision before
	upgrade.MaxHistory = historyLimit(spec.HistoryLimit)
	upgrade.SkipCRDs = true
	upgrade.TakeOwnership = true
	upgrade.DisableOpenAPIValidation = true
	upgrade.Timeout = s.engine.options.HookTimeout
	upgrade.PostRenderer = s

	_, err := upgrade.Run(s.release.Name, chart, spec.values())

	return err
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
	})

	if err := s.store.FailInterrupted(observed.Message); err != nil {
		return err
	}

	setTarget := s.client.SetTarget
	if options.SkipUnknownKinds {
		setTarget = s.client.SetPartialTarget
	}

	if err := setTarget(manifest.String()); err != nil {
		return s.explain(err, Spec{})
	}

	if err := s.recordStages(); err != nil {
		return s.explain(err, Spec{})
	}

	rollback := action.NewRollback(config)
	rollback.Version = options.Revision
	rollback.MaxHistory = historyLimit(options.HistoryLimit)
	rollback.Timeout = s.engine.options.HookTimeout

	return s.explain(rollback.Run(s.release.Name), Spec{})
}

// Run implements Helm's post-renderer. Helm calls it after it has rendered the manifest, and before
// it stores or applies anything.
func (s *session) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	manifest, err := postRender(s.postRenderer, rendered)
	if err != nil {
		return nil, err
	}

	if err := s.client.SetTarget(manifest.String()); err != nil {
		return nil, err
	}

	if err := s.recordStages(); err != nil {
		return nil, err
	}

	s.rendered = true

	return manifest, nil
}

// uninstall deletes the release.
func (s *session) uninstall(ctx context.Context, own OwnKinds) error {
	config, err := s.load(ctx)
	if err != nil {
		return err
	}

	newest, _ := s.store.Newest()
	if newest == 0 {
		return nil
	}

	if len(s.store.Readable()) == 0 {
		return &CorruptError{
			Secret: s.release.Namespace + "/" + storage.SecretName(s.release.Name, newest),
			Reason: "nor can an older one, so the objects to delete are unknown",
		}
	}

	s.client.SetOwnKinds(own)

	if err := s.client.RemoveOwn(s.store.CurrentManifests()); err != nil {
		return err
	}

	uninstall := action.NewUninstall(config)
	uninstall.Timeout = s.engine.options.HookTimeout

	_, err = uninstall.Run(s.release.Name)

	return s.explain(err, Spec{})
}

func (s *session) result() Result {
	revision, status := s.store.LastWritten()

	return Result{Revision: revision, Status: status, Changes: s.client.Changes()}
}
