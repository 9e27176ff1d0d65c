package release

import (
	"bytes"
	"context"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

// Render gives the record that Apply would make, as far as the chart decides it, and neither
// applies nor stores anything. Kinds that the API server does not know yet are fine. The error is a
// *RenderError, or says why the cluster could not be asked.
func (e *Engine) Render(ctx context.Context, d Desired) (*Record, error) {
	s := e.newSession(ctx, d.Namespace, d.Name)

	caps, err := e.cluster.caps()
	if err != nil {
		return nil, err
	}

	chart, err := d.helmChart()
	if err != nil {
		return nil, s.explain(err, d)
	}

	a := action.NewInstall(
		&action.Configuration{RESTClientGetter: e.cluster, KubeClient: s.client, Capabilities: caps, Log: helmLog(s.log)},
	)
	a.Namespace, a.ReleaseName = d.Namespace, d.Name
	a.DryRun, a.DryRunOption = true, "server" // templates see the cluster, as they do when it is meant
	a.IsUpgrade = true                        // so that Helm does not ask which objects exist

	a.SkipCRDs, a.DisableOpenAPIValidation = true, true
	if d.PostRenderer != nil {
		a.PostRenderer = postRender(d.PostRenderer.Render)
	}

	rel, err := a.Run(chart, values(d))
	if err != nil {
		return nil, s.explain(err, d)
	}

	rel.Info = &helmrelease.Info{}

	return e.record(rel)
}

// postRender is a PostRenderer as Helm wants it.
type postRender func(manifest []byte) ([]byte, error)

func (render postRender) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	manifest, err := render(rendered.Bytes())
	return bytes.NewBuffer(manifest), err
}
