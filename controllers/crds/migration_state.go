package crds

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// migrationAnnotation on a CRD is the progress of its migration.
const migrationAnnotation = v1alpha2.Prefix + "/crd-migration"

// migration rewrites all objects of a CRD in its storage version. Its state is saved on the CRD.
type migration struct {
	// To is the storage version.
	To string `json:"to"`
	// From are the versions that no object will be stored in afterwards.
	From []string `json:"from,omitempty"`
	// Retired are the versions that no managedFields will name afterwards. They are replaced by
	// Successor.
	Retired   []string `json:"retired,omitempty"`
	Successor string   `json:"successor,omitempty"`
	// Continue is the token of the next page of objects.
	Continue string `json:"continue,omitempty"`
	Done     int64  `json:"done"`
	Total    int64  `json:"total"`
	Finished bool   `json:"finished,omitempty"`
}

// parseMigration returns the migration that is saved on a CRD. One that cannot be parsed was saved
// by another version of Capstan; it is ignored, and the objects are migrated again.
func parseMigration(crd *apiextensionsv1.CustomResourceDefinition) migration {
	m := migration{}
	if err := json.Unmarshal([]byte(crd.Annotations[migrationAnnotation]), &m); err != nil {
		return migration{}
	}

	return m
}

// resume returns the migration that is saved on a CRD, if it covers the wanted one, and the wanted
// one from its start otherwise.
func (m migration) resume(crd *apiextensionsv1.CustomResourceDefinition) *migration {
	notStored := without(m.From, crd.Status.StoredVersions)

	m.To = versions.StorageName(crd)
	m.From = without(m.From, notStored)

	saved := parseMigration(crd)
	if saved.covers(m) && (!saved.Finished || len(m.From) == 0) {
		return &saved
	}

	m.Finished = len(m.From) == 0 && len(m.Retired) == 0

	return &m
}

// covers reports whether a migration does at least what another one does.
func (m migration) covers(other migration) bool {
	return m.To == other.To &&
		m.Successor == other.Successor &&
		len(without(other.From, m.From)) == 0 &&
		len(without(other.Retired, m.Retired)) == 0
}

// saveMigration saves the progress of a migration on its CRD; nil removes it.
func (a *Applier) saveMigration(ctx context.Context, name string, m *migration) (*metav1.PartialObjectMetadata, error) {
	var value any

	if m != nil {
		text, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}

		value = string(text)
	}

	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"annotations": map[string]any{migrationAnnotation: value},
		},
	})
	if err != nil {
		return nil, err
	}

	saved, err := a.patchCRD(ctx, name, patch)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the CustomResourceDefinition was deleted in the meantime: %w", err)
	}

	if err != nil {
		return nil, fmt.Errorf("annotate CustomResourceDefinition %s: %w", name, err)
	}

	return saved, nil
}

// resetMigration makes the next migration of a CRD start with the first object.
func (a *Applier) resetMigration(ctx context.Context, name string) error {
	_, err := a.saveMigration(ctx, name, nil)

	return err
}

// patchCRD sends a merge patch of a CRD or its subresource.
func (a *Applier) patchCRD(
	ctx context.Context,
	name string,
	patch []byte,
	subresources ...string,
) (*metav1.PartialObjectMetadata, error) {
	options := metav1.PatchOptions{FieldManager: v1alpha2.FieldOwner}

	return a.Metadata.Resource(crdResource).Patch(ctx, name, types.MergePatchType, patch, options, subresources...)
}
