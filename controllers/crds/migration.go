package crds

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// observedAnnotation is set on a CRD by Cluster API's own migrator when it has rewritten the objects.
// Its value is the generation of the CRD that it did so for.
const observedAnnotation = "crd-migration.cluster.x-k8s.io/observed-generation"

// Progress is the progress of a migration after a page of objects.
type Progress struct {
	CRD         string
	Done, Total int64
}

func (p Progress) String() string {
	return fmt.Sprintf("migrated %d of %d objects of %s", p.Done, p.Total, p.CRD)
}

// migration rewrites all objects of a CRD in its storage version, one page for each call. It is remembered between the
// calls; after a restart it begins again, and the API server does not write what is stored as it should be.
type migration struct {
	// from are the versions that no object will be stored in afterwards.
	from []string
	// retired are the versions that no managedFields will name afterwards. They are replaced by
	// successor.
	retired   []string
	successor string

	// uid and generation are those of the CRD when the migration began. Another generation may have another storage
	// version.
	uid        types.UID
	generation int64
	// next is the token of the next page of objects, done how many were rewritten, and total how many there are.
	next        string
	done, total int64
	// finished is the resource version of the CRD when the last page was rewritten; empty before.
	finished string
}

// MigrateBeforeApply rewrites objects that are stored in versions that the plan removes, if the live
// CRD already has another storage version. This must be done before the changes are applied, because
// the running managers are known to be able to convert the objects.
//
// Each call rewrites one page. It returns nil if nothing is left to do, in which case the plan no longer
// keeps the versions for these objects.
func (a *Applier) MigrateBeforeApply(ctx context.Context, p *Plan) (*Progress, error) {
	for _, c := range p.changes {
		if c.live == nil {
			continue
		}

		m := migration{
			from:      without(c.kept, []string{versions.StorageName(c.live)}),
			successor: c.successor,
		}
		if c.successor != "" {
			m.retired = slices.Concat(c.retired, m.from)
		}

		if progress, err := a.migrate(ctx, c.live, m); progress != nil || err != nil {
			return progress, err
		}

		c.kept = without(c.kept, m.from)
	}

	return nil, nil
}

// PendingMigrations returns the provider's CRDs whose objects may be stored in other versions than
// the storage version, and those of them that the provider's own manager has already tried to
// migrate.
func (p *Plan) PendingMigrations() (pending, tried []string) {
	for _, c := range p.managed {
		if len(oldStoredVersions(c.live)) == 0 {
			continue
		}

		pending = append(pending, c.name)

		if c.live.Annotations[observedAnnotation] == strconv.FormatInt(c.live.Generation, 10) {
			tried = append(tried, c.name)
		}
	}

	return pending, tried
}

// oldStoredVersions returns the versions besides the storage version that objects may be stored in.
func oldStoredVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	return without(crd.Status.StoredVersions, []string{versions.StorageName(crd)})
}

// MigrateAfterRollout rewrites the objects of the named CRDs, once the new managers run. Each call rewrites
// one page. It returns nil if nothing is left to do.
func (a *Applier) MigrateAfterRollout(ctx context.Context, p *Plan, names []string) (*Progress, error) {
	for _, c := range p.managed {
		if !slices.Contains(names, c.name) {
			continue
		}

		m := migration{
			from:      oldStoredVersions(c.live),
			retired:   c.kept,
			successor: versions.StorageName(c.live),
		}

		if progress, err := a.migrate(ctx, c.live, m); progress != nil || err != nil {
			return progress, err
		}
	}

	return nil, nil
}

// migrate rewrites the next page of the objects of a CRD. It returns nil if there is none with objects any more.
func (a *Applier) migrate(
	ctx context.Context,
	crd *apiextensionsv1.CustomResourceDefinition,
	wanted migration,
) (*Progress, error) {
	if len(wanted.from) == 0 && len(wanted.retired) == 0 {
		return nil, nil
	}

	m := a.resume(crd, wanted)
	if m.finished != "" {
		return nil, nil
	}

	if err := a.migratePage(ctx, crd, &m); err != nil {
		return nil, fmt.Errorf("the objects of %s could not be migrated to the storage version, which will be retried: %w",
			crd.Name, err)
	}

	a.migrations.add(crd.Name, m)

	if m.total == 0 {
		return nil, nil
	}

	return &Progress{CRD: crd.Name, Done: m.done, Total: m.total}, nil
}

// migratePage rewrites the next page of objects. After the last one, it removes the old versions from
// status.storedVersions.
func (a *Applier) migratePage(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, m *migration) error {
	if err := a.rewritePage(ctx, crd, m); err != nil || m.next != "" {
		return err
	}

	m.finished = crd.ResourceVersion

	if len(m.from) == 0 {
		return nil
	}

	return a.trimStoredVersions(ctx, crd, m)
}

// resume returns the migration of a CRD that is remembered, if it does at least what is wanted now, and the wanted one
// from its start otherwise.
func (m *memory) resume(crd *apiextensionsv1.CustomResourceDefinition, wanted migration) migration {
	wanted.uid, wanted.generation = crd.UID, crd.Generation

	known, _ := m.migrations.get(crd.Name)
	if !known.covers(wanted) {
		return wanted
	}

	// Only a cache that lags still shows versions that were removed from status.storedVersions.
	lags := known.finished == crd.ResourceVersion
	if known.finished != "" && len(wanted.from) > 0 && !lags {
		return wanted
	}

	return known
}

// covers reports whether a migration does at least what another one does.
func (m migration) covers(other migration) bool {
	return m.uid == other.uid &&
		m.generation == other.generation &&
		m.successor == other.successor &&
		len(without(other.from, m.from)) == 0 &&
		len(without(other.retired, m.retired)) == 0
}

// trimStoredVersions removes the versions in which no object is stored any longer from
// status.storedVersions, if the CRD is still the one that the migration began with.
func (a *Applier) trimStoredVersions(
	ctx context.Context,
	crd *apiextensionsv1.CustomResourceDefinition,
	m *migration,
) error {
	stored := without(crd.Status.StoredVersions, m.from)
	if storage := versions.StorageName(crd); !slices.Contains(stored, storage) {
		stored = append(stored, storage)
	}

	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": m.uid},
		{"op": "test", "path": "/metadata/generation", "value": m.generation},
		{"op": "replace", "path": "/status/storedVersions", "value": stored},
	})
	if err != nil {
		return err
	}

	_, err = a.Metadata.Resource(crdResource).Patch(ctx, crd.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: v1alpha2.FieldOwner}, "status")
	if err != nil {
		return fmt.Errorf("remove the old versions from status.storedVersions, unless the CustomResourceDefinition was "+
			"changed in the meantime: %w", err)
	}

	return nil
}
