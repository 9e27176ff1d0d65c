package crds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// observedAnnotation is set on a CRD by Cluster API's own migrator when it has rewritten the objects.
// Its value is the generation of the CRD that it did so for.
const observedAnnotation = "crd-migration.cluster.x-k8s.io/observed-generation"

// timeSlice is how long one call rewrites objects before it returns, so that no reconcile takes
// long.
const timeSlice = 2 * time.Second

// Progress is the progress of a migration.
type Progress struct {
	CRD   string `json:"-"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

func (p Progress) String() string {
	return fmt.Sprintf("migrated %d of %d objects of %s", p.Done, max(p.Done, p.Total), p.CRD)
}

// MigrationError is returned if objects could not be rewritten.
type MigrationError struct {
	// Name of the CRD.
	Name string
	Err  error
}

func (e *MigrationError) Error() string {
	return fmt.Sprintf("the objects of %s could not be migrated to the storage version, which will be retried: %s",
		e.Name, e.Err)
}

func (e *MigrationError) Unwrap() error { return e.Err }

// MigrateBeforeApply rewrites objects that are stored in versions that the plan removes, if the live
// CRD already has another storage version. This must be done before the changes are applied, because
// the running managers are known to be able to convert the objects.
//
// It returns after a short while: nil if nothing is left to do, in which case the plan no longer
// keeps the versions for these objects. The error is a *MigrationError.
func (a *Applier) MigrateBeforeApply(ctx context.Context, p *Plan) (*Progress, error) {
	deadline := time.Now().Add(timeSlice)

	for _, c := range p.changes {
		if c.live == nil {
			continue
		}

		m := migration{
			From:      without(c.kept, []string{versions.StorageName(c.live)}),
			Successor: c.successor,
		}
		if c.successor != "" {
			m.Retired = slices.Concat(c.retired, m.From)
		}

		if len(m.From) == 0 && len(m.Retired) == 0 {
			continue
		}

		if progress, err := a.migrate(ctx, c.name, m, deadline); progress != nil || err != nil {
			return progress, err
		}

		c.kept = without(c.kept, m.From)
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

// MigrateAfterRollout rewrites the objects of the named CRDs, once the new managers run. It returns
// after a short while: nil if nothing is left to do. The error is a *MigrationError.
func (a *Applier) MigrateAfterRollout(ctx context.Context, p *Plan, names []string) (*Progress, error) {
	deadline := time.Now().Add(timeSlice)

	for _, c := range p.managed {
		if !slices.Contains(names, c.name) {
			continue
		}

		m := migration{
			From:      oldStoredVersions(c.live),
			Retired:   c.kept,
			Successor: versions.StorageName(c.live),
		}

		if progress, err := a.migrate(ctx, c.name, m, deadline); progress != nil || err != nil {
			return progress, err
		}
	}

	return nil, nil
}

// CleanUpMigrations removes the state of finished migrations from the provider's CRDs.
func (a *Applier) CleanUpMigrations(ctx context.Context, p *Plan) error {
	return forEach(p.managed, func(_ int, c *change) error {
		migrated := len(oldStoredVersions(c.live)) == 0 && len(c.kept) == 0 && len(c.retired) == 0
		if !migrated || c.live.Annotations[migrationAnnotation] == "" {
			return nil
		}

		return a.resetMigration(ctx, c.name)
	})
}

// migrate continues the migration of one CRD until the deadline. It returns nil if that is finished.
func (a *Applier) migrate(ctx context.Context, name string, wanted migration, deadline time.Time) (*Progress, error) {
	crd, err := a.getComplete(ctx, name)
	if err != nil || crd == nil {
		return nil, err
	}

	m := wanted.resume(crd)

	for !m.Finished {
		if err := a.migratePage(ctx, crd, m); err != nil {
			return nil, &MigrationError{Name: name, Err: err}
		}

		if !m.Finished && time.Now().After(deadline) {
			return &Progress{CRD: name, Done: m.Done, Total: m.Total}, nil
		}
	}

	return nil, nil
}

// migratePage rewrites one page of objects and saves the progress. After the last page, it removes
// the old versions from status.storedVersions.
func (a *Applier) migratePage(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, m *migration) error {
	last, err := a.rewritePage(ctx, crd, m)
	if err != nil {
		return err
	}

	if last && len(m.From) == 0 {
		m.Finished = true
	}

	saved, err := a.saveMigration(ctx, crd.Name, m)
	if err != nil || !last || m.Finished {
		return err
	}

	if saved.Generation != crd.Generation {
		return errors.New("the CustomResourceDefinition was changed in the meantime")
	}

	if err := a.trimStoredVersions(ctx, crd, m, saved.ResourceVersion); err != nil {
		return err
	}

	m.Finished = true
	_, err = a.saveMigration(ctx, crd.Name, m)

	return err
}

// trimStoredVersions removes the versions in which no object is stored any longer from
// status.storedVersions, if the CRD still has the resource version.
func (a *Applier) trimStoredVersions(
	ctx context.Context,
	crd *apiextensionsv1.CustomResourceDefinition,
	m *migration,
	resourceVersion string,
) error {
	stored := without(crd.Status.StoredVersions, m.From)
	if !slices.Contains(stored, m.To) {
		stored = append(stored, m.To)
	}

	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"status":   map[string]any{"storedVersions": stored},
	})
	if err != nil {
		return err
	}

	if _, err := a.patchCRD(ctx, crd.Name, patch, "status"); err != nil {
		return fmt.Errorf("trim status.storedVersions: %w", err)
	}

	return nil
}
