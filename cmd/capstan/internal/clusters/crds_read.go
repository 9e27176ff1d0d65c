package clusters

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/cmd/capstan/internal/charts"
	"github.com/capstan-project/capstan/controllers/crds/safety"
)

// readCRDs reads the CRDs of a file of components, a chart or a provider's folder.
func readCRDs(
	ctx context.Context, path string, identity *charts.Identity,
) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	text, err := readDocuments(ctx, path, identity)
	if err != nil {
		return nil, err
	}

	crds, err := safety.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	return crds, nil
}

// readDocuments returns the YAML documents that contain the CRDs.
func readDocuments(ctx context.Context, path string, identity *charts.Identity) ([]byte, error) {
	if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
		return os.ReadFile(path)
	}

	c, err := charts.Open(ctx, path, identity)
	if err != nil {
		return nil, err
	}

	var text []byte

	for _, f := range c.CRDs {
		text = append(text, "\n---\n"...)
		text = append(text, f.Data...)
	}

	return text, nil
}

// changes returns the changes from the CRDs of --baseline to the desired ones.
func (o *checkOptions) changes(
	ctx context.Context,
	desired []*apiextensionsv1.CustomResourceDefinition,
) ([]safety.Change, error) {
	old, err := readCRDs(ctx, o.baseline, o.identity)
	if err != nil {
		return nil, err
	}

	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range old {
		byName[crd.Name] = asInstalled(crd)
	}

	changes := make([]safety.Change, 0, len(desired))
	for _, d := range desired {
		changes = append(changes, safety.Change{Live: byName[d.Name], Desired: d})
	}

	return changes, nil
}

// asInstalled sets the status of a CRD to that in a cluster which never had another version of it.
func asInstalled(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			crd.Status.StoredVersions = []string{v.Name}
		}
	}

	return crd
}
