package release

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Render returns the record that Prepared.Apply would create, as far as it depends on the chart. It applies
// and stores nothing, and accepts kinds that the API server does not know yet. The error is a
// *problem.Error.
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
) ([]apply.Trial, error) {
	copies := make([]*unstructured.Unstructured, 0, len(objects))
	for _, o := range objects {
		copies = append(copies, o.DeepCopy())
	}

	return e.newClient(ctx, release, state.Memory{}).PreviewAdoption(copies)
}

// render returns a revision as it is recorded, without its times and its status, and the objects of its manifest. The
// error is a *problem.Error.
func (s Spec) render(options helm.ReleaseOptions) (*helm.Release, []*unstructured.Unstructured, error) {
	options.Name = s.Release.Name
	options.Namespace = s.Release.Namespace

	rendered, err := render.Render(s.Chart, s.values(), options)
	if err != nil {
		return nil, nil, s.renderError(err)
	}

	recordPatchedCRDs(rendered.Chart, s.PatchedCRDs)

	objects, err := s.postRender(rendered.Manifest)
	if err != nil {
		return nil, nil, err
	}

	text, err := manifest.Encode(objects)
	if err != nil {
		return nil, nil, s.renderError(err)
	}

	if err := limit.Documents(text); err != nil {
		return nil, nil, s.renderError(fmt.Errorf("the manifest with patches and additional objects %w", err))
	}

	return &helm.Release{
		Name:      s.Release.Name,
		Namespace: s.Release.Namespace,
		Version:   options.Revision,
		Chart:     rendered.Chart,
		Config:    s.values(),
		Manifest:  text,
		Info:      &helm.Info{Notes: rendered.Notes},
	}, objects, nil
}

// postRender returns the objects of a rendered manifest as the post-renderer changes them. The error is a
// *problem.Error.
func (s Spec) postRender(rendered string) ([]*unstructured.Unstructured, error) {
	objects, err := manifest.Decode(rendered)
	if err == nil && s.PostRenderer != nil {
		objects, err = s.PostRenderer.Render(objects)
	}

	if err != nil {
		return nil, s.renderError(err)
	}

	return objects, nil
}

// renderError returns why the chart cannot be rendered, without values.
func (s Spec) renderError(err error) error {
	failed := problem.Fail(v1alpha2.InstallFailedReason,
		"chart %s cannot be rendered: %s; correct the variables, or the version",
		s.chartName(), redact(schemaErrors(err.Error()), s.Values))
	failed.Cause = err // its text may quote values

	return failed
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
