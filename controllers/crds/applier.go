// Package crds applies a provider's CustomResourceDefinitions, which are not part of its Helm
// release. It creates and updates them by server-side apply, sending only those that changed, and
// never downgrades or deletes them. Before a version of a CRD is removed, the objects stored in it
// are rewritten.
//
// A reconcile starts with a Plan, which needs no requests while everything is up to date. It then
// checks that the CRDs it does not manage are compatible (CheckUnmanaged), rewrites objects
// (MigrateBeforeApply), tries the changes on the objects (CheckChanges) and applies them (Apply).
// Once the new managers run, it rewrites the remaining objects (MigrateAfterRollout).
package crds

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/trial"
)

// concurrency limits the requests in flight. More would not help, because the API server then waits
// for its own processors.
const concurrency = 16

var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// Clients are an Applier's clients of one cluster.
type Clients struct {
	// Metadata patches CRDs and their objects. Responses contain only the metadata, not a megabyte
	// of schemas.
	Metadata metadata.Interface
	// Client reads CRDs from a cache, which may omit their schemas; see StripSchemas.
	Client client.Reader
	// APIReader reads complete CRDs from the API server.
	APIReader client.Reader
	// Objects reads the objects that a change is tried on.
	Objects trial.Objects
	// HasRelease reports whether a Helm release is installed; nil if none is.
	HasRelease func(context.Context, types.NamespacedName) (bool, error)
	// HasProvider reports whether a provider, given its label, may be installed by whatever program; nil if none is.
	HasProvider func(ctx context.Context, label string) (bool, error)
}

// Applier applies CRDs.
type Applier struct {
	Clients
	*memory
}

// NewApplier returns an Applier for a cluster.
func NewApplier(clients Clients) *Applier {
	return &Applier{Clients: clients, memory: newMemory()}
}

// WithClients returns an Applier for the same cluster that uses other clients, e.g. those of another
// user.
func (a *Applier) WithClients(clients Clients) *Applier {
	return &Applier{Clients: clients, memory: a.memory}
}

// Apply applies the changes of a plan and returns the names of the CRDs that it sent. It prepares
// all of them before it sends the first, and asks the API server by dry runs whether it would accept
// all of several if any of them exists. If the API server refuses one, the error is a *problem.Error.
func (a *Applier) Apply(ctx context.Context, p *Plan) (applied []string, err error) {
	bodies, drops := make([][]byte, len(p.changes)), make([]bool, len(p.changes))

	err = forEach(p.changes, func(i int, c *change) error {
		kept, err := a.keptVersions(ctx, c)
		if err != nil {
			return err
		}

		object, err := c.prepare(p.request, kept)
		if err != nil {
			return err
		}

		if bodies[i], err = json.Marshal(object.Object); err != nil {
			return err
		}

		drops[i] = c.dropsWebhook(object)

		if p.changesSome() {
			if err := a.tryApply(ctx, c, object); err != nil {
				return err
			}
		}

		_, err = a.learnFields(c.definition, object)

		return err
	})
	if err != nil {
		return nil, err
	}

	for _, c := range p.changes {
		applied = append(applied, c.name)
	}

	return applied, forEach(p.changes, func(i int, c *change) error {
		if drops[i] {
			if err := a.takeConversion(ctx, c.name); err != nil {
				return err
			}
		}

		err := a.send(ctx, c.name, bodies[i])
		if err == nil && c.live != nil {
			a.update(c.name, func(r *remembered) { r.replaced = c.live.ResourceVersion })
		}

		return err
	})
}

// tryApply asks the API server whether it would accept a CRD. Most of a CRD are descriptions, which are left out: they
// would only take it time.
func (a *Applier) tryApply(ctx context.Context, c *change, object *unstructured.Unstructured) error {
	if c.dropsWebhook(object) {
		kept, err := c.keepWebhook(object)
		if err != nil {
			return err
		}

		object = kept
	}

	body, err := json.Marshal(withoutDescriptions(object.Object))
	if err != nil {
		return err
	}

	return a.send(ctx, c.name, body, metav1.DryRunAll)
}

// changesSome reports whether one of several CRDs could be changed before another is refused. Of CRDs that
// are all new nothing depends yet.
func (p *Plan) changesSome() bool {
	return len(p.changes) > 1 && slices.ContainsFunc(p.changes, func(c *change) bool { return c.live != nil })
}

// keptVersions returns the live versions that a change has to keep, with their schemas.
func (a *Applier) keptVersions(
	ctx context.Context,
	c *change,
) ([]apiextensionsv1.CustomResourceDefinitionVersion, error) {
	if len(c.kept) == 0 {
		return nil, nil
	}

	live, err := a.getComplete(ctx, c.name)
	if err != nil || live == nil {
		return nil, err
	}

	return pickVersions(live, c.kept), nil
}

// getCached reads a CRD, possibly without schemas, from the cache. It is nil if it does not exist.
func (a *Applier) getCached(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	return get(ctx, a.Client, name)
}

// getComplete reads a CRD with its schemas from the API server. It is nil if it does not exist.
func (a *Applier) getComplete(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	return get(ctx, a.APIReader, name)
}

func get(ctx context.Context, reader client.Reader, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}

	err := reader.Get(ctx, client.ObjectKey{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
	}

	return crd, nil
}

// send applies one CRD. It takes over fields that kubectl or clusterctl applied before. Fields that
// the body does not contain, such as the caBundle that cert-manager injects, stay as they are.
func (a *Applier) send(ctx context.Context, name string, body []byte, dryRun ...string) error {
	options := metav1.PatchOptions{
		FieldManager: v1alpha2.FieldOwner, Force: ptr.To(true), DryRun: dryRun,
		// Otherwise the API server parses the body a second time, for duplicate fields, which JSON of ours cannot have.
		FieldValidation: metav1.FieldValidationIgnore,
	}

	_, err := a.Metadata.Resource(crdResource).Patch(ctx, name, types.ApplyPatchType, body, options)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		return Refused(name, err)
	}

	if err != nil {
		return fmt.Errorf("apply CustomResourceDefinition %s: %w", name, err)
	}

	return nil
}

// forEach calls f for all items, several at a time, and returns the first error.
func forEach[T any](items []T, f func(i int, item T) error) error {
	var group errgroup.Group
	group.SetLimit(concurrency)

	for i, item := range items {
		group.Go(func() error { return f(i, item) })
	}

	return group.Wait()
}
