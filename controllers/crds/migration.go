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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	// migrationAnnotation holds, on a CRD, how far the rewriting of its objects has come.
	migrationAnnotation = v1alpha2.Prefix + "/crd-migration"

	// observedAnnotation is put on a CRD by Cluster API's own migrator when it has rewritten the
	// objects, and holds the generation of the CRD that it did so for.
	observedAnnotation = "crd-migration.cluster.x-k8s.io/observed-generation"
)

// slice is how long one call rewrites objects before it returns, so that no reconcile takes long.
const slice = 2 * time.Second

// Progress is how far the rewriting of one CRD's objects has come.
type Progress struct {
	CRD   string `json:"-"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

func (p Progress) String() string {
	return fmt.Sprintf("migrated %d of %d objects of %s", p.Done, max(p.Done, p.Total), p.CRD)
}

// MigrationError says that objects could not be rewritten.
type MigrationError struct {
	// Name of the CRD.
	Name string
	Err  error
}

func (e *MigrationError) Error() string {
	return fmt.Sprintf(
		"the objects of %s could not be rewritten in their new storage version, which is tried again: %s",
		e.Name,
		e.Err,
	)
}

func (e *MigrationError) Unwrap() error { return e.Err }

// migration is the rewriting of a CRD's objects in its storage version. All that it knows is kept
// on the CRD.
type migration struct {
	// To is the storage version.
	To string `json:"to"`
	// From are versions that no object will be stored in afterwards.
	From []string `json:"from,omitempty"`
	// Retired are versions that no managedFields will name afterwards, and Heir is the one that
	// they name instead.
	Retired []string `json:"retired,omitempty"`
	Heir    string   `json:"heir,omitempty"`
	// Continue is where the list of objects goes on.
	Continue string `json:"continue,omitempty"`
	Done     int64  `json:"done"`
	Total    int64  `json:"total"`
	Finished bool   `json:"finished,omitempty"`
}

// MigrateBefore rewrites, for a while, objects that are stored in versions that the plan's changes
// take away, and that the CRD as it is can be stored in another version than. It must be done
// before the changes are applied, for the managers that run now can convert them for sure. It
// returns nil when nothing is left to do. The error is a *MigrationError.
func (a *Applier) MigrateBefore(ctx context.Context, p *Plan) (*Progress, error) {
	deadline := time.Now().Add(slice)

	for _, c := range p.changes {
		if c.live == nil {
			continue
		}

		m := migration{From: missing(c.kept, []string{storage(c.live)}), Heir: c.heir}
		if c.heir != "" {
			m.Retired = slices.Concat(c.retired, m.From)
		}

		if len(m.From) == 0 && len(m.Retired) == 0 {
			continue
		}

		if progress, err := a.migrate(ctx, c.name, m, deadline); progress != nil || err != nil {
			return progress, err
		}

		c.kept = missing(c.kept, m.From)
	}

	return nil, nil
}

// Unmigrated are the provider's CRDs that have objects, or had, in another version than the storage
// version, and those of them whose manager has had its try at it.
func (p *Plan) Unmigrated() (all, tried []string) {
	for _, c := range p.managed {
		if len(c.stored()) == 0 {
			continue
		}

		all = append(all, c.name)
		if c.live.Annotations[observedAnnotation] == strconv.FormatInt(c.live.Generation, 10) {
			tried = append(tried, c.name)
		}
	}

	return all, tried
}

// stored are the versions besides the storage version that objects may be stored in.
func (c *change) stored() []string {
	return missing(c.live.Status.StoredVersions, []string{storage(c.live)})
}

// MigrateAfter rewrites, for a while, the objects of the named CRDs. It must be done when the new
// managers run. It returns nil when nothing is left to do. The error is a *MigrationError.
func (a *Applier) MigrateAfter(ctx context.Context, p *Plan, names []string) (*Progress, error) {
	deadline := time.Now().Add(slice)

	for _, c := range p.managed {
		if !slices.Contains(names, c.name) {
			continue
		}

		m := migration{From: c.stored(), Retired: c.kept, Heir: storage(c.live)}
		if progress, err := a.migrate(ctx, c.name, m, deadline); progress != nil || err != nil {
			return progress, err
		}
	}

	return nil, nil
}

// Tidy removes what migrations that are over have left on the provider's CRDs.
func (a *Applier) Tidy(ctx context.Context, p *Plan) error {
	return each(p.managed, func(_ int, c *change) error {
		if c.live.Annotations[migrationAnnotation] == "" || len(c.stored()) > 0 || len(c.kept) > 0 || len(c.retired) > 0 {
			return nil
		}

		return a.forget(ctx, c.name)
	})
}

// forget makes the next migration of a CRD begin at the first object.
func (a *Applier) forget(ctx context.Context, name string) error {
	_, err := a.annotate(ctx, name, nil)
	return err
}

// migrate goes on with one CRD until the deadline; nil means that it is done.
func (a *Applier) migrate(ctx context.Context, name string, wanted migration, deadline time.Time) (*Progress, error) {
	crd, err := a.whole(ctx, name)
	if err != nil || crd == nil {
		return nil, err
	}

	m := wanted.resume(crd)
	for !m.Finished {
		if err := a.step(ctx, crd, m); err != nil {
			return nil, &MigrationError{Name: name, Err: err}
		}

		if !m.Finished && time.Now().After(deadline) {
			return &Progress{CRD: name, Done: m.Done, Total: m.Total}, nil
		}
	}

	return nil, nil
}

// resume reads how far the migration has come. It begins anew when the last one was about less.
func (m migration) resume(crd *apiextensionsv1.CustomResourceDefinition) *migration {
	m.To = storage(crd)
	m.From = slices.DeleteFunc(
		slices.Clone(m.From),
		func(v string) bool { return !slices.Contains(crd.Status.StoredVersions, v) },
	)
	last := &migration{}
	// What cannot be read was written by another version of this code: then it begins anew, too.
	_ = json.Unmarshal([]byte(crd.Annotations[migrationAnnotation]), last)

	covered := last.To == m.To && last.Heir == m.Heir && len(missing(m.From, last.From)) == 0 &&
		len(missing(m.Retired, last.Retired)) == 0
	if covered && (!last.Finished || len(m.From) == 0) {
		return last
	}

	m.Finished = len(m.From) == 0 && len(m.Retired) == 0

	return &m
}

// step rewrites one page of objects, or, after the last, takes the versions from the list of those
// that are stored.
func (a *Applier) step(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, m *migration) error {
	last, err := a.page(ctx, crd, m)
	if err != nil {
		return err
	}

	if last && len(m.From) == 0 {
		m.Finished = true
	}

	saved, err := a.annotate(ctx, crd.Name, m)
	if err != nil || !last || m.Finished {
		return err
	}

	if saved.Generation != crd.Generation {
		return errors.New("it was changed meanwhile")
	}

	stored := missing(crd.Status.StoredVersions, m.From)
	if !slices.Contains(stored, m.To) {
		stored = append(stored, m.To)
	}

	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": saved.ResourceVersion},
		"status":   map[string]any{"storedVersions": stored},
	})
	if err != nil {
		return err
	}

	if _, err := a.Writer.Resource(resource).
		Patch(ctx, crd.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha2.FieldOwner}, "status"); err != nil {
		return fmt.Errorf("trim status.storedVersions: %w", err)
	}

	m.Finished = true
	_, err = a.annotate(ctx, crd.Name, m)

	return err
}

// annotate writes how far a migration has come; nil removes it.
func (a *Applier) annotate(ctx context.Context, name string, m *migration) (*metav1.PartialObjectMetadata, error) {
	var value any

	if m != nil {
		text, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}

		value = string(text)
	}

	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{migrationAnnotation: value}}},
	)
	if err != nil {
		return nil, err
	}

	options := metav1.PatchOptions{FieldManager: v1alpha2.FieldOwner}

	saved, err := a.Writer.Resource(resource).Patch(ctx, name, types.MergePatchType, patch, options)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("it was deleted meanwhile: %w", err)
	}

	if err != nil {
		return nil, fmt.Errorf("annotate CustomResourceDefinition %s: %w", name, err)
	}

	return saved, nil
}
