package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/manifest"
	"github.com/capstan-project/capstan/controllers/release/sandbox"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Render returns the record that Prepared.Apply would create, as far as it depends on the chart. It applies
// and stores nothing, and accepts kinds that the API server does not know yet. The error is a
// *RenderError, unless the cluster does not respond.
func (e *Engine) Render(ctx context.Context, spec Spec) (*Record, error) {
	s := e.newSession(ctx, spec.Release)

	capabilities, err := e.connection.Capabilities()
	if err != nil {
		return nil, err
	}

	chart, err := s.renderChart(ctx, spec, chartutil.ReleaseOptions{Revision: 1, IsUpgrade: true}, capabilities)
	if err != nil {
		return nil, err
	}

	rel, objects, err := s.renderManifest(chart, spec, capabilities)
	if err != nil {
		return nil, err
	}

	rel.Info = &helmrelease.Info{}
	e.setNamespaces(rel, objects)

	record := newRecord(rel, objects)

	for _, hook := range rel.Hooks {
		objects, err := e.decode(rel, hook.Manifest)
		if err != nil {
			return nil, err
		}

		record.Hooks = append(record.Hooks, objects...)
	}

	return record, nil
}

// PreviewAdoption finds out what would become of the objects of a rendered record if they were applied as the
// first revision of a release. It changes nothing.
func (e *Engine) PreviewAdoption(
	ctx context.Context, release types.NamespacedName, objects []*unstructured.Unstructured,
) ([]cluster.Adoption, error) {
	copies := make([]*unstructured.Unstructured, 0, len(objects))
	for _, o := range objects {
		copies = append(copies, o.DeepCopy())
	}

	return e.newClient(ctx, release).PreviewAdoption(copies)
}

// renderManifest returns the revision that Helm would create from a chart that renderChart has returned, and the
// objects of its manifest.
func (s *session) renderManifest(
	chart *helmchart.Chart, spec Spec, capabilities *chartutil.Capabilities,
) (*helmrelease.Release, []*unstructured.Unstructured, error) {
	install := action.NewInstall(&action.Configuration{
		RESTClientGetter: s.engine.connection,
		KubeClient:       &kubefake.PrintingKubeClient{Out: io.Discard}, // as for helm template
		Capabilities:     capabilities,
		Log:              helmLog(s.log),
	})
	install.Namespace = s.release.Namespace
	install.ReleaseName = s.release.Name
	install.DryRun = true
	install.DryRunOption = "client"
	install.IsUpgrade = true // Helm does not check which objects exist
	install.SkipCRDs = true
	install.DisableOpenAPIValidation = true
	install.PostRenderer = postRendererOnly{spec.PostRenderer}

	rel, err := install.Run(chart, spec.values())
	if err != nil {
		return nil, nil, s.explain(err, spec)
	}

	objects, err := manifest.Decode(rel.Manifest)
	if err != nil {
		return nil, nil, s.explain(err, spec)
	}

	return rel, objects, checkTypes(objects, rel, spec)
}

// checkTypes returns an error if the API server would refuse an object of a revision, patches included, because
// of the type of a value: a first install is not tried by dry runs. The error is a *RenderError.
func checkTypes(objects []*unstructured.Unstructured, rel *helmrelease.Release, spec Spec) error {
	err := checkMistyped(objects, rel.Chart.Values, spec.Values)
	if err == nil {
		return nil
	}

	return &RenderError{Chart: spec.chartName(), Reason: object.OneLine(err.Error(), maxMessage), cause: err}
}

// renderChart renders the chart of a release in a child process, and returns a chart whose templates
// are the rendered files: Helm's actions render charts themselves. It also sets what is stored as the
// chart of the new revision. The error is a *RenderError, unless there is no child process.
func (s *session) renderChart(
	ctx context.Context, spec Spec, options chartutil.ReleaseOptions, capabilities *chartutil.Capabilities,
) (*helmchart.Chart, error) {
	options.Name = s.release.Name
	options.Namespace = s.release.Namespace

	rendered, err := sandbox.Render(ctx, s.release.Namespace, sandbox.Request{
		Files:        spec.Chart.Files,
		Values:       spec.Values,
		Release:      options,
		Capabilities: capabilities,
	})

	var chartErr *sandbox.ChartError
	if errors.As(err, &chartErr) {
		return nil, s.explain(err, spec)
	}

	if err != nil {
		return nil, err
	}

	recordPatchedCRDs(rendered.Chart, spec.PatchedCRDs)
	s.store.SetNewChart(rendered.Chart)

	metadata := *rendered.Chart.Metadata
	metadata.Dependencies = nil // their files are among the rendered ones

	literal := &helmchart.Chart{Metadata: &metadata, Values: rendered.Chart.Values}
	for name, text := range rendered.Files {
		literal.Templates = append(literal.Templates, &helmchart.File{
			Name: strings.TrimPrefix(name, metadata.Name+"/"),
			Data: []byte(expr.Literal(text)),
		})
	}

	return literal, nil
}

// recordPatchedCRDs writes which CRDs are patched into the annotations of a chart to store: `helm get metadata`
// shows them.
func recordPatchedCRDs(stored *helmchart.Chart, patched string) {
	annotations := maps.Clone(stored.Metadata.Annotations)
	delete(annotations, storage.PatchedCRDsAnnotation)

	if patched != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}

		annotations[storage.PatchedCRDsAnnotation] = patched
	}

	stored.Metadata.Annotations = annotations
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

	if _, err := limit.Documents(string(manifest)); err != nil {
		return nil, fmt.Errorf("the manifest with patches and additional objects %w", err)
	}

	return bytes.NewBuffer(manifest), nil
}
