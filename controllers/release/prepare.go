package release

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Prepared is an install or upgrade that only has to be applied.
type Prepared struct {
	session  *session
	spec     Spec
	observed state.Observed

	next    *storage.Next
	record  *helm.Release
	objects []*unstructured.Unstructured // of the manifest
	draft   *apply.Draft
	install bool // otherwise it is an upgrade
}

// Prepare prepares an install or upgrade of a release, and changes nothing. It renders the chart, reads
// the objects, and asks the API server, by dry runs, whether it would accept what changes. With crdsFollow, CRDs of the
// chart are applied before the release: objects of the kinds that they define are not tried, and these kinds need not
// be served yet. Objects of the inventory that the new revision does not have are deleted.
//
// The error is, or wraps, one of these: storage.ErrChanged, *problem.Error,
// *apply.UnknownKindError, *apply.ConflictError, *apply.DryRunError, *apply.UnavailableError if the API server
// could not be asked, or *storage.Error if the record would be too large.
func (e *Engine) Prepare(
	ctx context.Context, spec Spec, memory state.Memory, observed state.Observed, crdsFollow bool,
) (*Prepared, error) {
	if observed.State == state.Locked {
		return nil, locked(observed)
	}

	s, err := e.openConfirmed(ctx, spec.Release, memory, observed.Revision)
	if err != nil {
		return nil, err
	}

	p := &Prepared{session: s, spec: spec, observed: observed}

	if err := p.render(ctx); err != nil {
		return nil, err
	}

	if err := p.check(crdsFollow); err != nil {
		return nil, err
	}

	return p, nil
}

// render renders the next revision.
func (p *Prepared) render(ctx context.Context) error {
	s := p.session

	revision, err := p.spec.revision()
	if err != nil {
		return err
	}

	p.next, err = s.store.Next(revision, p.spec.Salt, s.begun())
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return err
	}

	newest, status := s.store.Newest()
	p.install = newest == 0 || status == v1alpha2.RevisionUninstalled

	p.record, p.objects, err = p.spec.render(helm.ReleaseOptions{
		Revision: p.next.Number, IsInstall: p.install, IsUpgrade: !p.install,
	})

	return err
}

// check reads the objects of the manifest, and makes sure that the API server would accept them.
func (p *Prepared) check(crdsFollow bool) error {
	err := cmp.Or(asks.Check(p.objects), p.session.store.CheckSize(p.record))
	if err != nil {
		return err
	}

	target := apply.Target{Objects: p.objects}

	deployed := p.observed.Revision.Confirmed() && p.observed.Revision.Status == v1alpha2.RevisionDeployed
	if target.Verified = p.session.memory.Verified; deployed && len(target.Verified) > 0 {
		if target.Former, err = p.session.objectsOf(p.observed.Revision); err != nil {
			return err
		}
	}

	if crdsFollow {
		defined := sync.OnceValue(func() map[schema.GroupKind]crds.DefinedKind {
			return crds.DefinedKinds(p.spec.Chart.CRDs)
		})
		target.Awaited = func(kind schema.GroupKind) bool {
			_, found := defined()[kind]
			return found
		}
	}

	if p.draft, err = p.session.client.Read(target); err != nil {
		return p.withVariables(err)
	}

	return p.withVariables(p.draft.DryRun(!crdsFollow))
}

// withVariables adds to the error for refused objects which variables these have: one may have a wrong value.
func (p *Prepared) withVariables(err error) error {
	if refused := new(apply.DryRunError); errors.As(err, &refused) {
		for _, o := range refused.Objects {
			o.Variables = chartgen.VariablesOf(p.spec.Chart, o.Object.Kind, o.Object.Name)
		}
	}

	return err
}

// Objects returns the objects of the manifest. They must not be changed.
func (p *Prepared) Objects() []*unstructured.Unstructured { return p.objects }

// Adopts returns the objects, as they are in the cluster, that belong to no release until they are applied.
func (p *Prepared) Adopts() []*unstructured.Unstructured { return p.draft.Adoptable() }

// Apply changes the release to its desired state: by an install if the release was state.Absent, state.RecordsLost or
// state.Uninstalled, otherwise by an upgrade. It first marks the newest revision
// failed if the release was state.Interrupted. It returns when the objects are applied, ready or
// not. The revision is announced before it is written, with the version that the adopted objects are; empty if that is
// unknown. It cannot be cancelled once it has started; each of its
// requests is limited instead. It must be called only once.
//
// The error is nil only if the result is stored. Otherwise it is, or wraps, one of these:
//   - storage.ErrChanged, *problem.Error, *apply.UnknownKindError, *apply.ConflictError: nothing was done
//   - *apply.RejectedError, *apply.UnavailableError, *apply.RemoveError: there is a new revision, which
//     failed; after a *apply.UnavailableError, the next Apply of the same writes that revision again
//   - *storage.Error: the Secret of a revision could not be written
func (p *Prepared) Apply(ctx context.Context, adoptedVersion string) (Result, error) {
	return p.session.run(func() (Result, error) { return p.apply(ctx, adoptedVersion) })
}

func (p *Prepared) apply(ctx context.Context, adoptedVersion string) (Result, error) {
	s := p.session

	set, err := p.draft.Complete()
	if err != nil {
		return Result{}, err
	}

	install := attempt{
		next: p.next, record: p.record, set: set, action: installing,
		adoptedVersion: adoptedVersion, limit: p.spec.HistoryLimit,
	}

	if p.install {
		if err := s.store.Replace(); err != nil {
			return Result{}, err
		}

		return s.perform(ctx, install)
	}

	if err := s.store.Settle(p.observed.Message); err != nil {
		return Result{}, err
	}

	if err := s.store.Inherit(p.record); err != nil {
		return Result{}, err
	}

	upgrade := install
	upgrade.action = upgrading

	return s.perform(ctx, upgrade)
}
