package release

import (
	"bytes"
	"context"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

// Render returns the record that Apply would create, as far as it depends on the chart. It applies
// and stores nothing, and accepts kinds that the API server does not know yet. The error is a
// *RenderError, unless the cluster does not respond.
func (e *Engine) Render(ctx context.Context, spec Spec) (*Record, error) {
	s := e.newSession(ctx, spec.Release)

	capabilities, err := e.connection.Capabilities()
	if err != nil {
		return nil, err
	}

	chart, err := spec.helmChart()
	if err != nil {
		return nil, s.explain(err, spec)
	}

	install := action.NewInstall(&action.Configuration{
		RESTClientGetter: e.connection,
		KubeClient:       s.client,
		Capabilities:     capabilities,
		Log:              helmLog(s.log),
	})
	install.Namespace = spec.Release.Namespace
	install.ReleaseName = spec.Release.Name
	install.DryRun = true
	install.DryRunOption = "server" // templates can look objects up, as in an install
	install.IsUpgrade = true        // Helm does not check which objects exist
	install.SkipCRDs = true
	install.DisableOpenAPIValidation = true
	install.PostRenderer = postRendererOnly{spec.PostRenderer}

	rel, err := install.Run(chart, spec.values())
	if err != nil {
		return nil, s.explain(err, spec)
	}

	rel.Info = &helmrelease.Info{}

	return e.newRecord(rel)
}

// postRendererOnly implements Helm's post-renderer by Capstan's.
type postRendererOnly struct{ PostRenderer }

func (p postRendererOnly) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	return postRender(p.PostRenderer, rendered)
}

// postRender returns the manifest as the post-renderer changes it, which may be nil.
func postRender(renderer PostRenderer, rendered *bytes.Buffer) (*bytes.Buffer, error) {
	if renderer == nil {
		return rendered, nil
	}

	manifest, err := renderer.Render(rendered.Bytes())
	if err != nil {
		return nil, err
	}

	return bytes.NewBuffer(manifest), nil
}
