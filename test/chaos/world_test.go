package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/model"
	"github.com/capstan-project/capstan/test/testproviders"
)

// root is the module's root.
const root = "../.."

// faultRate is the share of the operator's requests that fail.
const faultRate = 0.05

// world is a control plane with two operators, core and the provider.
type world struct {
	bed       *bed.Bed
	client    client.Client
	observer  *observer
	operators [2]*operator
	charts    map[string]string // for helm, by version

	oracle   *model.Oracle
	wanted   model.Wanted
	deleting bool
	requests int
}

// newWorld prepares a control plane. The caller stops the operators.
func newWorld(ctx context.Context, b *bed.Bed, program, folder string, seed uint64) (*world, error) {
	c, err := harness.PrepareForTest(ctx, b.Config())
	if err != nil {
		return nil, err
	}

	w := &world{
		bed: b, client: c, oracle: &model.Oracle{}, charts: map[string]string{},
		observer: &observer{client: c, contents: map[types.UID]model.Content{}},
	}

	for i := range w.operators {
		if w.operators[i], err = newOperator(b, program, folder, fmt.Sprintf("operator-%d", i), seed+uint64(i)); err != nil {
			return nil, err
		}

		if err := w.operators[i].start(); err != nil {
			return nil, err
		}
	}

	return w, w.prepare(ctx, folder)
}

// prepare installs core and creates everything that the provider's resource refers to.
func (w *world) prepare(ctx context.Context, folder string) error {
	core, err := harness.Load(ctx, filepath.Join(root, testproviders.Samples), harness.Wanted{Label: "cluster-api"})
	if err != nil {
		return err
	}

	if _, err := core.Install(ctx, w.client); err != nil {
		return err
	}

	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		secret(0),
	}

	for _, v := range model.Catalog {
		objects = append(objects, source(v))

		if w.charts[v.Name], err = writeChart(folder, v); err != nil {
			return err
		}
	}

	for _, o := range objects {
		if err := w.client.Create(ctx, o); err != nil {
			return err
		}
	}

	return w.create(ctx)
}

// create creates the resource.
func (w *world) create(ctx context.Context) error {
	w.wanted = model.Wanted{Version: model.Catalog[0].Name}
	w.deleting = false
	w.oracle.Created(w.wanted)

	return w.client.Create(ctx, resource(w.wanted))
}

// read reads the resource. The error is that it does not exist, or any other.
func (w *world) read(ctx context.Context) (*v1alpha2.InfrastructureProvider, error) {
	p := &v1alpha2.InfrastructureProvider{}
	return p, w.client.Get(ctx, key, p)
}

// check checks what can be seen of the provider now. It creates the resource again if that has gone.
func (w *world) check(ctx context.Context) error {
	for _, o := range w.operators {
		if err := o.revive(); err != nil {
			return err
		}
	}

	if w.deleting {
		return w.checkRemoval(ctx)
	}

	snapshot, err := w.observer.snapshot(ctx)
	if err != nil {
		return err
	}

	if violation := w.oracle.Check(snapshot); violation != nil {
		return violation
	}

	return nil
}

// checkRemoval checks that nothing is left once the resource is gone. Then users delete the CRD, which is
// kept, and create another resource.
func (w *world) checkRemoval(ctx context.Context) error {
	if _, err := w.read(ctx); !apierrors.IsNotFound(err) {
		return err
	}

	snapshot, err := w.observer.snapshot(ctx)
	if err != nil {
		return err
	}

	if violation := w.oracle.CheckGone(snapshot); violation != nil {
		return violation
	}

	if _, err := w.run(ctx, "kubectl", "delete", "crd", crd, "--ignore-not-found"); err != nil {
		return err
	}

	return w.create(ctx)
}

// leader returns the operator that has renewed its Lease last.
func (w *world) leader() *operator {
	if w.operators[1].renewed.Load() > w.operators[0].renewed.Load() {
		return w.operators[1]
	}

	return w.operators[0]
}

// pause waits until an operator has changed something, at most for the given time. Chaos is about time,
// so it has to wait.
func (w *world) pause(ctx context.Context, longest time.Duration) {
	writes := func() int64 { return w.operators[0].writes.Load() + w.operators[1].writes.Load() }
	before := writes()

	timer := time.NewTimer(longest)
	defer timer.Stop()

	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()

	for writes() == before {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-ticker.C:
		}
	}
}

// run runs a program of the bed, as a user would.
func (w *world) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := w.bed.Command(ctx, program, args...)

	var stderr bytes.Buffer

	cmd.Stderr = &stderr

	out, err := cmd.Output()
	if err != nil {
		err = errors.Join(err, errors.New(stderr.String()))
	}

	return string(out), err
}
