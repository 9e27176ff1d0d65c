package release

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/policies"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// Prepared is an install or upgrade that only has to be applied.
type Prepared struct {
	session  *session
	spec     Spec
	observed state.Observed

	revision *helm.Release
	objects  []*unstructured.Unstructured // of the manifest
	install  bool                         // otherwise it is an upgrade
}

// PrepareOptions are the options of Engine.Prepare.
type PrepareOptions struct {
	// CRDsFollow is true if CRDs of the chart are applied before the release. Objects of the kinds that they
	// define are not tried then, and these kinds need not be served yet.
	CRDsFollow bool
	// Known is what is known of the revisions of the history, and Last the number of the last one that is known to have
	// existed; 0 for none.
	Known []state.Revision
	Last  int
	// Inventory are the objects that the release has, or may have. Those that the new revision does not have are deleted.
	Inventory []object.Key
}

// Prepare prepares an install or upgrade of a release, and changes nothing. It renders the chart, reads
// the objects, and asks the API server, by dry runs, whether it would accept what changes.
//
// The error is, or wraps, one of these: storage.ErrChanged, *problem.Error,
// *cluster.UnknownKindError, *cluster.ConflictError, *cluster.DryRunError, *cluster.UnavailableError if the API server
// could not be asked, or *storage.Error if the record would be too large.
func (e *Engine) Prepare(
	ctx context.Context, spec Spec, observed state.Observed, options PrepareOptions,
) (*Prepared, error) {
	if observed.State == state.Locked {
		return nil, locked(observed)
	}

	p := &Prepared{session: e.newSession(ctx, spec.Release), spec: spec, observed: observed}
	p.session.store.Recall(options.Known)
	p.session.store.SetLast(options.Last)
	p.session.known = options.Inventory

	if err := p.render(ctx); err != nil {
		return nil, err
	}

	if err := p.check(options); err != nil {
		return nil, err
	}

	return p, nil
}

// render reads the history and renders the next revision.
func (p *Prepared) render(ctx context.Context) error {
	s := p.session
	if err := s.loadObserved(ctx, p.observed.Revision); err != nil {
		return err
	}

	s.store.ProtectHealthy()

	next, err := p.spec.revision()
	if err != nil {
		return err
	}

	err = s.store.SetNewRevision(storage.NewRevision{Revision: next, Owner: p.spec.Owner, Salt: p.spec.Salt})
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return err
	}

	newest, status := s.store.Newest()
	p.install = newest == 0 || status == v1alpha2.RevisionUninstalled

	p.revision, p.objects, err = p.spec.render(helm.ReleaseOptions{
		Revision: s.store.NextRevision(), IsInstall: p.install, IsUpgrade: !p.install,
	})

	return err
}

// check reads the objects of the manifest, and makes sure that the API server would accept them.
func (p *Prepared) check(options PrepareOptions) error {
	var defined map[schema.GroupKind]crds.DefinedKind

	isAwaited := func(kind schema.GroupKind) bool {
		if options.CRDsFollow && defined == nil {
			defined = crds.DefinedKinds(p.spec.Chart.CRDs)
		}

		_, found := defined[kind]

		return found
	}

	err := cmp.Or(waves.Check(p.objects), policies.Check(p.objects), p.session.store.CheckSize(p.revision))
	if err != nil {
		return err
	}

	client := p.session.client
	client.SetOwnKinds(p.spec.Own)
	client.SetKnown(options.Inventory)

	if err := client.SetTarget(p.objects, isAwaited); err != nil {
		return p.withVariables(err)
	}

	return p.withVariables(client.DryRunTarget(!options.CRDsFollow))
}

// withVariables adds to the error for refused objects which variables these have: one may have a wrong value.
func (p *Prepared) withVariables(err error) error {
	if refused := new(cluster.DryRunError); errors.As(err, &refused) {
		for _, o := range refused.Objects {
			o.Variables = chartgen.VariablesOf(p.spec.Chart, o.Object.Kind, o.Object.Name)
		}
	}

	return err
}

// Objects returns the objects of the manifest. They must not be changed.
func (p *Prepared) Objects() []*unstructured.Unstructured { return p.objects }

// Adopts returns the objects, as they are in the cluster, that belong to no release until they are applied.
func (p *Prepared) Adopts() []*unstructured.Unstructured { return p.session.client.Adoptable() }

// SetAdoptedVersion records, with the revision, the version of the provider that these objects are. It is empty if
// that is unknown.
func (p *Prepared) SetAdoptedVersion(version string) { p.session.store.SetAdoptedVersion(version) }

// Apply changes the release to its desired state: by an install if the release was state.Absent, state.RecordsLost or
// state.Uninstalled, otherwise by an upgrade. It first marks the newest revision
// failed if the release was state.Interrupted. It returns when the objects are applied, ready or
// not. The revision is announced before it is written. It cannot be cancelled once it has started; each of its
// requests is limited instead. It must be called only once.
//
// The error is nil only if the result is stored. Otherwise it is, or wraps, one of these:
//   - storage.ErrChanged, *problem.Error, *cluster.UnknownKindError, *cluster.ConflictError: nothing was done
//   - *cluster.RejectedError, *cluster.UnavailableError, *cluster.RemoveError: there is a new revision, which
//     failed; after a *cluster.UnavailableError, the next Apply of the same writes that revision again
//   - *storage.Error: the Secret of a revision could not be written
func (p *Prepared) Apply(announce state.Announce) (Result, error) {
	p.session.store.SetAnnounce(announce)

	return p.session.run(func(*session) error { return p.apply() })
}

func (p *Prepared) apply() error {
	s := p.session
	if err := s.client.CompleteTarget(); err != nil {
		return err
	}

	s.recordStages()

	if p.install {
		if err := s.store.Replace(); err != nil {
			return err
		}

		return s.perform(p.revision, installing, p.spec.HistoryLimit)
	}

	if err := s.store.Settle(p.observed.Message); err != nil {
		return err
	}

	if err := s.store.Inherit(p.revision); err != nil {
		return err
	}

	return s.perform(p.revision, upgrading, p.spec.HistoryLimit)
}
