package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/storage"
)

// session is one action on one release: Helm's, between a store and a client that are Capstan's.
type session struct {
	engine          *Engine
	namespace, name string
	log             logr.Logger
	store           *store
	client          *client
	postRenderer    PostRenderer
	rendered        bool
}

func (e *Engine) newSession(ctx context.Context, namespace, name string) *session {
	log := logr.FromContextOrDiscard(ctx)

	return &session{
		engine: e, namespace: namespace, name: name, log: log,
		store:  newStore(e.secrets.Secrets(namespace), namespace, name),
		client: newClient(e.cluster, namespace, name, log),
	}
}

// load reads the history, and makes of it what Helm's actions share.
func (s *session) load(ctx context.Context) (*action.Configuration, error) {
	if err := s.store.load(ctx); err != nil {
		return nil, err
	}

	s.client.attempts = s.store.attempts
	s.store.failure = s.failure

	caps, err := s.engine.cluster.caps()
	if err != nil {
		return nil, err
	}

	return &action.Configuration{
		RESTClientGetter: s.engine.cluster,
		Releases:         storage.Init(s.store),
		KubeClient:       s.client,
		Capabilities:     caps,
		Log:              helmLog(s.log),
		HookOutputFunc:   func(string, string, string) io.Writer { return io.Discard },
	}, nil
}

// loadAsObserved reads the history, which must be as it was observed.
func (s *session) loadAsObserved(ctx context.Context, state State) (*action.Configuration, error) {
	cfg, err := s.load(ctx)
	if err != nil {
		return nil, err
	}

	newest, status := s.store.newest()
	if state.Revision.Status != status || newest != nil && newest.Version != state.Revision.Number {
		return nil, fmt.Errorf("release %s/%s: %w", s.namespace, s.name, ErrChanged)
	}

	return cfg, nil
}

// failure is the kind of failure that the action has met.
func (s *session) failure() Failure {
	var unavailable *UnavailableError
	switch {
	case errors.As(s.client.failure, &unavailable):
		return Unavailable
	case s.store.err != nil:
		return Interrupted
	}

	return Rejected
}

// apply installs or upgrades.
func (s *session) apply(ctx context.Context, d Desired, state State) error {
	cfg, err := s.loadAsObserved(ctx, state)
	if err != nil {
		return err
	}

	s.store.keepHealthy()

	digest, err := s.engine.Digest(d)
	if err != nil {
		return err
	}

	s.store.stamp = stamp{
		holder:      s.engine.options.Holder,
		digest:      digest,
		version:     d.Chart.Metadata.AppVersion,
		chartDigest: d.ChartDigest,
	}
	s.postRenderer = d.PostRenderer

	chart, err := d.helmChart()
	switch newest, status := s.store.newest(); {
	case err != nil:
	case newest == nil, status == StatusUninstalled:
		err = s.install(cfg, chart, d)
	default:
		err = s.upgrade(cfg, chart, d, state)
	}

	return s.explain(err, d)
}

func (s *session) install(cfg *action.Configuration, chart *helmchart.Chart, d Desired) error {
	cfg.Releases.MaxHistory = historyLimit(d.HistoryLimit)
	a := action.NewInstall(cfg)
	a.Namespace, a.ReleaseName = s.namespace, s.name
	a.Replace = true // the history that an uninstall has kept
	a.SkipCRDs = true
	a.TakeOwnership = true
	a.DisableOpenAPIValidation = true
	a.Timeout = s.engine.options.HookTimeout
	a.PostRenderer = s
	_, err := a.Run(chart, values(d))

	return err
}

func (s *session) upgrade(cfg *action.Configuration, chart *helmchart.Chart, d Desired, state State) error {
	if err := s.store.settle("Abandoned: " + state.Message); err != nil {
		return err
	}

	a := action.NewUpgrade(cfg)
	a.Namespace = s.namespace
	a.ResetValues = true // or no values would mean those of the revision before
	a.MaxHistory = historyLimit(d.HistoryLimit)
	a.SkipCRDs = true
	a.TakeOwnership = true
	a.DisableOpenAPIValidation = true
	a.Timeout = s.engine.options.HookTimeout
	a.PostRenderer = s
	_, err := a.Run(s.name, chart, values(d))

	return err
}

// rollback returns to a revision. CRDs and the history stay as they are: the revision is made anew,
// from its manifest.
func (s *session) rollback(ctx context.Context, t Return, state State) error {
	cfg, err := s.loadAsObserved(ctx, state)
	if err != nil {
		return err
	}

	target := s.store.revisions[t.Revision]
	if target == nil || s.store.standIns[t.Revision] {
		return &NoRevisionError{Release: s.namespace + "/" + s.name, Revision: t.Revision, Present: s.store.readable()}
	}

	s.store.keepHealthy()
	s.store.kept[t.Revision] = true
	s.store.stamp = s.store.stampOf(target)

	s.store.stamp.holder, s.store.stamp.rollbackTo = s.engine.options.Holder, t.Revision
	if t.Digest != "" {
		s.store.stamp.digest = t.Digest
	}

	s.store.description = shorten(fmt.Sprintf("Rollback to %d: %s", t.Revision, t.Reason))
	if err := s.store.settle("Abandoned: " + state.Message); err != nil {
		return err
	}

	if err := s.client.aim(target.Manifest); err != nil {
		return s.explain(err, Desired{})
	}

	a := action.NewRollback(cfg)
	a.Version = t.Revision
	a.MaxHistory = historyLimit(t.HistoryLimit)
	a.Timeout = s.engine.options.HookTimeout

	return s.explain(a.Run(s.name), Desired{})
}

func values(d Desired) map[string]any {
	if d.Values == nil {
		return map[string]any{}
	}

	return d.Values
}

// Run is what Helm calls when it has rendered the manifest, and before it records or applies
// anything.
func (s *session) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	manifest := rendered.Bytes()

	if s.postRenderer != nil {
		var err error
		if manifest, err = s.postRenderer.Render(manifest); err != nil {
			return nil, err
		}
	}

	err := s.client.aim(string(manifest))
	s.rendered = err == nil

	return bytes.NewBuffer(manifest), err
}

// uninstall removes the release.
func (s *session) uninstall(ctx context.Context) error {
	cfg, err := s.load(ctx)
	if err != nil {
		return err
	}

	newest, _ := s.store.newest()
	if newest == nil {
		return nil
	}

	if len(s.store.standIns) == len(s.store.revisions) {
		return &CorruptError{
			Record: s.namespace + "/" + secretName(s.name, newest.Version),
			Reason: "nor can an older one, so it is not known what to remove",
		}
	}

	a := action.NewUninstall(cfg)
	a.Timeout = s.engine.options.HookTimeout
	_, err = a.Run(s.name)

	return s.explain(err, Desired{})
}

// explain turns what an action returned into what happened: Helm passes on texts, or less.
func (s *session) explain(err error, d Desired) error {
	switch {
	case s.client.failure != nil:
		return s.client.failure
	case s.store.err != nil:
		return s.store.err
	case err == nil:
		return nil
	case !s.rendered && d.Chart != nil:
		return &RenderError{
			Chart:  d.Chart.Metadata.Name + " " + d.Chart.Metadata.Version,
			Reason: redact(schemaProblems(err.Error()), d.Values),
			cause:  err,
		}
	default:
		return fmt.Errorf("release %s/%s: %s", s.namespace, s.name, redact(err.Error(), d.Values))
	}
}

func (s *session) result() Result {
	r := s.client.report
	r.Revision, r.Status = s.store.outcome()

	return r
}
