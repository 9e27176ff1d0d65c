package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/model"
)

// How long a step lets the operators work, and how long it may take until everything has settled.
const (
	operateTime = 250 * time.Millisecond
	passTime    = time.Second
	settleTime  = 3 * time.Minute
)

// take takes a step of a walk, and checks what can be seen of the provider then.
func (w *world) take(ctx context.Context, step model.Step) error {
	if step.Kind == model.Settle {
		return w.settle(ctx)
	}

	return errors.Join(w.act(ctx, step), w.check(ctx))
}

func (w *world) act(ctx context.Context, step model.Step) error {
	leader := w.leader()

	switch step.Kind {
	case model.Operate, model.Fail:
		w.pause(ctx, operateTime)
	case model.Pass:
		w.pause(ctx, passTime)
	case model.Kill:
		return leader.restart()
	case model.Freeze:
		return leader.freeze()
	case model.Thaw:
		return w.thaw()
	case model.Reconfigure:
		return w.reconfigure(step.Arg)
	default:
		if !w.deleting {
			return w.intervene(ctx, step)
		}
	}

	return nil
}

func (w *world) thaw() error {
	return errors.Join(w.operators[0].thaw(), w.operators[1].thaw())
}

func (w *world) reconfigure(registry int) error {
	for _, o := range w.operators {
		o.registry = registry

		if err := o.restart(); err != nil {
			return err
		}
	}

	return nil
}

// intervene is what users do.
func (w *world) intervene(ctx context.Context, step model.Step) error {
	switch step.Kind {
	case model.SetVersion:
		return w.ask(ctx, model.Wanted{Version: model.Popular[step.Arg], Paused: w.wanted.Paused})
	case model.SetPaused:
		return w.ask(ctx, model.Wanted{Version: w.wanted.Version, Paused: step.Arg == 1})
	case model.Request:
		w.requests++
		w.oracle.Requested()

		return w.patch(ctx, map[string]any{"metadata": map[string]any{"annotations": map[string]string{
			v1alpha2.ReconcileRequestAnnotation: strconv.Itoa(w.requests),
		}}})
	case model.EditSecret:
		return w.client.Update(ctx, secret(step.Arg))
	case model.HelmRollback:
		return w.helmRollback(ctx, step.Arg)
	case model.HelmUpgrade:
		return w.helm(ctx, "upgrade", release, w.charts[model.Accepted[step.Arg]])
	case model.HelmUninstall:
		return w.helm(ctx, "uninstall", release)
	case model.EditObject, model.DeleteObject:
		return w.disturb(ctx, step)
	case model.Remove:
		w.deleting = true
		_, err := w.run(ctx, "kubectl", "delete", "infrastructureprovider", name, "-n", namespace, "--wait=false")

		return err
	default:
		return fmt.Errorf("unknown step %s", step)
	}
}

// ask changes the resource.
func (w *world) ask(ctx context.Context, wanted model.Wanted) error {
	if wanted == w.wanted {
		return nil
	}

	w.wanted = wanted
	w.oracle.Asked(wanted)

	return w.patch(ctx, map[string]any{"spec": map[string]any{"version": wanted.Version, "paused": wanted.Paused}})
}

func (w *world) patch(ctx context.Context, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}

	return w.client.Patch(ctx, resource(w.wanted), client.RawPatch(types.MergePatchType, data))
}

// helmRollback rolls back to a revision, counted from the one before the newest one.
func (w *world) helmRollback(ctx context.Context, back int) error {
	snapshot, err := w.observer.snapshot(ctx)
	if err != nil {
		return err
	}

	target, exists := snapshot.HelmTarget(back)
	if !exists {
		return nil
	}

	return w.helm(ctx, "rollback", release, strconv.Itoa(target.Number))
}

// helm runs a helm command. It fails while another one is running, or if there is no release.
func (w *world) helm(ctx context.Context, args ...string) error {
	_, err := w.run(ctx, "helm", append(args, "-n", namespace)...)
	if errors.As(err, new(*exec.ExitError)) {
		return nil
	}

	return err
}

// disturb changes or deletes one of the provider's objects.
func (w *world) disturb(ctx context.Context, step model.Step) error {
	objects, err := w.observer.objects(ctx)
	if err != nil || len(objects) == 0 {
		return err
	}

	short := slices.Sorted(maps.Keys(objects))[step.Arg%len(objects)]
	object := []string{"configmap", "chaos-" + short}

	if short == model.Manager {
		object = []string{"deployment", manager}
	}

	var args []string

	switch {
	case step.Kind == model.DeleteObject:
		args = append([]string{"delete", "--wait=false", "--ignore-not-found"}, object...)
	case short == model.Manager:
		args = append([]string{"scale", fmt.Sprintf("--replicas=%d", objects[short].Replicas+2)}, object...)
	default:
		args = append([]string{"patch", "-p", `{"data":{"version":"edited"}}`}, object...)
	}

	_, err = w.run(ctx, "kubectl", append(args, "-n", namespace)...)
	if errors.As(err, new(*exec.ExitError)) {
		return nil // another program has deleted it meanwhile
	}

	return err
}

// settle ends all disturbances, waits until the provider is as it must be, and checks that it stays so.
func (w *world) settle(ctx context.Context) error {
	for _, o := range w.operators {
		o.faults.SetRate(0)
		defer o.faults.SetRate(faultRate)
	}

	if err := w.thaw(); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()

	for {
		err := w.check(ctx)
		if err != nil {
			return err
		}

		problem, err := w.unsettled(ctx)
		if err != nil || problem == nil {
			return err
		}

		w.pause(ctx, operateTime)

		if ctx.Err() != nil {
			return fmt.Errorf("after %s: %w", settleTime, problem)
		}
	}
}

// unsettled returns why the provider has not settled yet; nil if it has.
func (w *world) unsettled(ctx context.Context) (problem, err error) {
	if w.deleting {
		return errors.New("the resource is being deleted"), nil
	}

	p, err := w.read(ctx)
	if err != nil {
		return nil, err
	}

	ready := conditions.Get(p, v1alpha2.ReadyCondition)
	if ready == nil || p.Status.ObservedGeneration != p.Generation ||
		p.Status.LastHandledReconcileAt != p.Annotations[v1alpha2.ReconcileRequestAnnotation] {
		return errors.New("the operator has not reconciled the resource"), nil
	}

	snapshot, err := w.observer.snapshot(ctx)
	if err != nil {
		return nil, err
	}

	if violation := w.oracle.CheckIdle(snapshot); violation != nil {
		return fmt.Errorf("%w\nReady is %s, %s: %s", violation, ready.Status, ready.Reason, ready.Message), nil
	}

	if ready.Status == "True" || conditions.Has(p, v1alpha2.StalledCondition) {
		w.oracle.Settled()
	}

	return nil, nil
}
