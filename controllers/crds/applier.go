// Package crds applies a provider's CustomResourceDefinitions beside its Helm release. CRDs are
// applied and upgraded by server-side apply, never rolled back and never deleted; only those that
// changed are sent. Before a version of a CRD goes, the objects that are stored in it are
// rewritten.
//
// A reconcile makes a Plan, which costs nothing while all is as it should be, and follows it: what
// is left alone must Suffice, objects are rewritten (Migrate), what changes must be safe (Check),
// and then it is applied (Apply).
package crds

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/crds/safety"
)

// concurrency bounds the requests in flight. More does not help: the API server then waits for its
// own processors.
const concurrency = 16

var resource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// Clients are an Applier's ways to the API server.
type Clients struct {
	// Writer patches CRDs and their objects, and gets back their metadata only, not a megabyte of
	// schemas.
	Writer metadata.Interface
	// Reader reads CRDs from a watch, which may leave out their schemas; see WithoutSchemas.
	Reader client.Reader
	// Live reads whole CRDs from the API server.
	Live client.Reader
	// Objects reads the objects that a change is tried on.
	Objects safety.Objects
}

// Applier applies CRDs.
type Applier struct {
	Clients
	*memory
}

// memory is what Appliers of one cluster share. All of it could be found out again.
type memory struct {
	// writes bounds the objects that are rewritten, for all providers together.
	writes *rate.Limiter
	// parsed are the names of versions by the definition's digest.
	parsed sync.Map
	// verdicts are those of Suffices, by the CRD's name.
	verdicts sync.Map
	// interests are the labels of the providers that bring a CRD, by its name.
	interests sync.Map
	// deletions are the CRDs, by UID, whose deletion was told of.
	deletions sync.Map
}

// NewApplier makes an Applier.
func NewApplier(clients Clients) *Applier {
	return &Applier{Clients: clients, memory: &memory{writes: rate.NewLimiter(writesPerSecond, rewriters)}}
}

// With is an Applier for the same cluster with other rights.
func (a *Applier) With(clients Clients) *Applier { return &Applier{clients, a.memory} }

// RefusedError says that the API server did not take a CRD.
type RefusedError struct {
	// Name of the CRD.
	Name string
	Err  error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition %s was refused: %s", e.Name, reason(e.Err))
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Apply sends the CRDs that change, and reports their names. All are prepared before the first is
// sent. A refusal is a *RefusedError.
func (a *Applier) Apply(ctx context.Context, p *Plan) (sent []string, err error) {
	bodies := make([][]byte, len(p.changes))
	if err := each(p.changes, func(i int, c *change) (err error) {
		var live *apiextensionsv1.CustomResourceDefinition
		if len(c.kept) > 0 {
			if live, err = a.whole(ctx, c.name); err != nil {
				return err
			}
		}

		bodies[i], err = c.body(p.request.Namespace, p.request.Version, keep(live, c.kept))

		return err
	}); err != nil {
		return nil, err
	}

	for _, c := range p.changes {
		sent = append(sent, c.name)
	}

	return sent, each(p.changes, func(i int, c *change) error { return a.send(ctx, c.name, bodies[i]) })
}

// Pending lists those of the chart's CRDs that the API server does not serve yet. A CRD whose names
// are taken by another is a *RefusedError.
func (a *Applier) Pending(ctx context.Context, files []chart.File) ([]string, error) {
	var pending []string

	for _, f := range files {
		name := crdName(f)

		live, err := a.live(ctx, name)
		if err != nil {
			return nil, err
		}

		if live == nil || !live.DeletionTimestamp.IsZero() {
			pending = append(pending, name)
			continue
		}

		if reason := refusal(live); reason != "" {
			return nil, &RefusedError{Name: name, Err: errors.New(reason)}
		}

		if !Served(live) {
			pending = append(pending, name)
		}
	}

	return pending, nil
}

// live reads a CRD from the watch; nil when it is not there.
func (a *Applier) live(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	return get(ctx, a.Reader, name)
}

// whole reads a CRD with its schemas from the API server; nil when it is not there.
func (a *Applier) whole(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	return get(ctx, a.Live, name)
}

func get(ctx context.Context, from client.Reader, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	d := &apiextensionsv1.CustomResourceDefinition{}

	err := from.Get(ctx, client.ObjectKey{Name: name}, d)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
	}

	return d, nil
}

// send applies one CRD. Force takes over fields that kubectl or clusterctl applied before; fields
// that are not in the body, cert-manager's caBundle and foreign labels among them, stay as they
// are.
func (a *Applier) send(ctx context.Context, name string, body []byte) error {
	force := true
	options := metav1.PatchOptions{FieldManager: v1alpha2.FieldOwner, Force: &force}

	_, err := a.Writer.Resource(resource).Patch(ctx, name, types.ApplyPatchType, body, options)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		return &RefusedError{Name: name, Err: err}
	}

	if err != nil {
		return fmt.Errorf("apply CustomResourceDefinition %s: %w", name, err)
	}

	return nil
}

// each runs f for each item, some at a time, and gives the first error.
func each[T any](items []T, f func(i int, item T) error) error {
	var group errgroup.Group
	group.SetLimit(concurrency)

	for i, item := range items {
		group.Go(func() error { return f(i, item) })
	}

	return group.Wait()
}

// reason is the API server's reason without the object's name, which the message has already.
func reason(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return err.Error()
	}

	causes := status.Status().Details.Causes

	text := fmt.Sprintf("%s: %s", causes[0].Field, causes[0].Message)
	if len(causes) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(causes)-1)
	}

	return text
}
