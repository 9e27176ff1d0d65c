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
	"github.com/capstan-project/capstan/controllers/object"
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

// task is what a migration does with all objects of a CRD.
type task struct {
	// from are the versions that no object will be stored in afterwards.
	from []string
	// retired are the versions that no managedFields will name afterwards. They are replaced by
	// successor.
	retired   []string
	successor string
}

// migration is how far the objects of a CRD are rewritten in its storage version. It is remembered between the calls,
// of which each rewrites a page; after a restart it begins again, and the API server does not write what is stored as
// it should be.
type migration struct {
	// goal identifies the CRD, its generation, and what managedFields will name. Another generation may have another
	// storage version.
	goal string
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

		t := task{
			from:      without(c.kept, []string{versions.StorageName(c.live)}),
			successor: c.successor,
		}
		if c.successor != "" {
			t.retired = slices.Concat(c.retired, t.from)
		}

		if progress, err := a.migrate(ctx, c.live, t); progress != nil || err != nil {
			return progress, err
		}

		c.kept = without(c.kept, t.from)
	}

	return nil, nil
}

// PendingMigrations returns the provider's CRDs whose objects may be stored in another version than the storage
// version, and the subset that the provider's own manager has already tried to migrate.
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

		t := task{
			from:      oldStoredVersions(c.live),
			retired:   c.kept,
			successor: versions.StorageName(c.live),
		}

		if progress, err := a.migrate(ctx, c.live, t); progress != nil || err != nil {
			return progress, err
		}
	}

	return nil, nil
}

// migrate rewrites the next page of the objects of a CRD. It returns nil if there is none with objects any more.
func (a *Applier) migrate(
	ctx context.Context,
	crd *apiextensionsv1.CustomResourceDefinition,
	t task,
) (*Progress, error) {
	if len(t.from) == 0 && len(t.retired) == 0 {
		return nil, nil
	}

	m := a.of(crd.Name).migration.resume(crd, t)
	if m.finished != "" {
		return nil, nil
	}

	err := a.rewritePage(ctx, crd, t, &m)
	if err == nil && m.finished != "" && len(t.from) > 0 {
		err = a.trimStoredVersions(ctx, crd, t)
	}

	if object.IsConversion(err) {
		return nil, fmt.Errorf("the objects of %s could not be migrated to the storage version, "+
			"which will be retried: %w; %s",
			crd.Name, err, object.ConversionFix(crd.Name))
	}

	if err != nil {
		return nil, fmt.Errorf("the objects of %s could not be migrated to the storage version, which will be retried: %w",
			crd.Name, err)
	}

	a.update(crd.Name, func(r *remembered) { r.migration = m })

	if m.total == 0 {
		return nil, nil
	}

	return &Progress{CRD: crd.Name, Done: m.done, Total: m.total}, nil
}

// resume returns the migration to continue for a task: the remembered one if it has the same goal, and one from the
// start otherwise.
func (m migration) resume(crd *apiextensionsv1.CustomResourceDefinition, t task) migration {
	goal := fmt.Sprint(crd.UID, crd.Generation, slices.Sorted(slices.Values(t.retired)), t.successor)

	// Only a cache that lags still shows versions that were removed from status.storedVersions.
	lags := m.finished == crd.ResourceVersion
	storedAgain := m.finished != "" && !lags && len(t.from) > 0

	if m.goal != goal || storedAgain {
		return migration{goal: goal}
	}

	return m
}

// trimStoredVersions removes the versions in which no object is stored any longer from
// status.storedVersions, if the CRD is still the one that the migration began with.
func (a *Applier) trimStoredVersions(
	ctx context.Context,
	crd *apiextensionsv1.CustomResourceDefinition,
	t task,
) error {
	stored := without(crd.Status.StoredVersions, t.from)
	if storage := versions.StorageName(crd); !slices.Contains(stored, storage) {
		stored = append(stored, storage)
	}

	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": crd.UID},
		{"op": "test", "path": "/metadata/generation", "value": crd.Generation},
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
