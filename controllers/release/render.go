package release

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/manifest"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Render returns the record that Prepared.Apply would create, as far as it depends on the chart. It applies
// and stores nothing, and accepts kinds that the API server does not know yet. The error is a
// *RenderError.
func (e *Engine) Render(spec Spec) (*Record, error) {
	rel, objects, err := spec.render(helm.ReleaseOptions{Revision: 1, IsUpgrade: true})
	if err != nil {
		return nil, err
	}

	e.setNamespaces(rel, objects)

	return newRecord(rel, objects), nil
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

// render returns a revision as it is recorded, without its times and its status, and the objects of its manifest. The
// error is a *RenderError.
func (s Spec) render(options helm.ReleaseOptions) (*helm.Release, []*unstructured.Unstructured, error) {
	options.Name = s.Release.Name
	options.Namespace = s.Release.Namespace

	rendered, err := render.Render(s.Chart, s.values(), options)
	if err != nil {
		return nil, nil, s.renderError(err)
	}

	recordPatchedCRDs(rendered.Chart, s.PatchedCRDs)

	content, err := postRender(s.PostRenderer, rendered.Manifest)
	if err != nil {
		return nil, nil, s.renderError(err)
	}

	rel := &helm.Release{
		Name:      s.Release.Name,
		Namespace: s.Release.Namespace,
		Version:   options.Revision,
		Chart:     rendered.Chart,
		Config:    s.values(),
		Manifest:  content,
		Info:      &helm.Info{Notes: rendered.Notes},
	}

	objects, err := manifest.Decode(rel.Manifest)
	if err != nil {
		return nil, nil, s.renderError(err)
	}

	return rel, objects, nil
}

// renderError returns why the chart cannot be rendered, without values.
func (s Spec) renderError(err error) error {
	return &RenderError{Chart: s.chartName(), Reason: redact(schemaErrors(err.Error()), s.Values), cause: err}
}

// recordPatchedCRDs writes which CRDs are patched into the annotations of a chart to store: `helm get metadata`
// shows them.
func recordPatchedCRDs(stored *helm.Chart, patched string) {
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

// postRender returns a manifest as the post-renderer changes it, which may be nil.
func postRender(renderer PostRenderer, rendered string) (string, error) {
	if renderer == nil {
		return rendered, nil
	}

	manifest, err := renderer.Render([]byte(rendered))
	if err != nil {
		return "", err
	}

	if _, err := limit.Documents(string(manifest)); err != nil {
		return "", fmt.Errorf("the manifest with patches and additional objects %w", err)
	}

	return string(manifest), nil
}
