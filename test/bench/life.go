package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// measureOperator measures an operator on a new control plane, in the last round idle, too.
func (s *setting) measureOperator(
	ctx context.Context,
	program string,
	profiler profiler,
	last bool,
) (measured stageFigures, err error) {
	w, err := s.newSite(ctx, program, bed.Options{})
	defer func() { err = errors.Join(err, w.stop()) }()

	if err != nil {
		return nil, err
	}

	if program == capstan {
		w.profiler = profiler
	}

	if err := w.run(ctx); err != nil {
		return nil, err
	}

	steps := []func(context.Context) error{w.install, w.change, w.correct, w.upgradeOne}
	if program != peer { // which refuses older versions
		steps = append(steps, w.rollBack)
	}

	steps = append(steps, w.upgradeAll)
	if last {
		steps = append(steps, w.idle)
	}

	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}

	return w.measured, w.restart(ctx, restart)
}

func (w *site) install(ctx context.Context) error {
	if err := w.prepare(ctx, w.older...); err != nil {
		return err
	}

	return w.stage(ctx, install, func(ctx context.Context) error {
		for _, r := range w.older {
			if err := w.client.Create(ctx, w.resource(r)); err != nil {
				return err
			}
		}

		return w.awaitReady(ctx, w.older, 0)
	})
}

// change changes a value that changes nothing but the number of pods, which start at once here.
func (w *site) change(ctx context.Context) error {
	r := w.older[changed]

	return w.stage(ctx, change, func(ctx context.Context) error {
		if err := w.patch(ctx, r, func(spec *v1alpha2.ProviderSpec) {
			spec.Deployment = &v1alpha2.DeploymentSpec{Replicas: ptr.To[int32](replicasAfter)}
		}); err != nil {
			return err
		}

		return w.awaitReady(ctx, []*harness.Release{r}, replicasAfter)
	})
}

// correct measures how long another user's change of a Deployment remains, and undoes it if it does.
func (w *site) correct(ctx context.Context) error {
	r := w.older[changed]

	deployment, err := w.deployment(ctx, r)
	if err != nil {
		return err
	}

	missed, err := w.stageWithin(ctx, correct, driftTimeout, func(ctx context.Context) error {
		if err := w.scale(ctx, deployment, 0); err != nil {
			return err
		}

		return awaitManagers(ctx, w.client, []*harness.Release{r}, replicasAfter)
	})
	if err != nil || !missed {
		return err
	}

	return errors.Join(
		w.scale(ctx, deployment, replicasAfter),
		awaitManagers(ctx, w.client, []*harness.Release{r}, replicasAfter),
	)
}

// deployment returns one of the Deployments of a release.
func (w *site) deployment(ctx context.Context, r *harness.Release) (*appsv1.Deployment, error) {
	images, err := managers(r)
	if err != nil {
		return nil, err
	}

	list := &appsv1.DeploymentList{}
	if err := w.client.List(ctx, list); err != nil {
		return nil, err
	}

	i := slices.IndexFunc(list.Items, func(d appsv1.Deployment) bool { return images[d.Name] != nil })
	if i < 0 {
		return nil, fmt.Errorf("%s has no Deployment", r.Bundle.Provider.Label)
	}

	return &list.Items[i], nil
}

func (w *site) scale(ctx context.Context, d *appsv1.Deployment, replicas int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	return w.client.Patch(ctx, d.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))
}

func (w *site) upgradeOne(ctx context.Context) error {
	return w.upgrade(ctx, upgradeOne, w.middle)
}

func (w *site) rollBack(ctx context.Context) error {
	return w.upgrade(ctx, rollBack, w.older[upgraded])
}

func (w *site) upgradeAll(ctx context.Context) error {
	return w.upgrade(ctx, upgradeAll, w.newer...)
}

// upgrade sets the versions of releases.
func (w *site) upgrade(ctx context.Context, s stage, releases ...*harness.Release) error {
	if err := w.prepare(ctx, releases...); err != nil {
		return err
	}

	return w.stage(ctx, s, func(ctx context.Context) error {
		for _, r := range releases {
			wanted := w.resource(r).GetSpec()

			if err := w.patch(ctx, r, func(spec *v1alpha2.ProviderSpec) {
				spec.Version, spec.FetchConfig = wanted.Version, wanted.FetchConfig
			}); err != nil {
				return err
			}
		}

		return w.awaitReady(ctx, releases, 0)
	})
}

func (w *site) idle(ctx context.Context) error {
	if _, err := quiet(ctx, w.operator, longQuiet); err != nil {
		return err
	}

	return w.stage(ctx, idle, func(ctx context.Context) error {
		pause(ctx, w.options.idle)
		return ctx.Err()
	})
}

// patience is how many times as long as Capstan another operator may take for many small providers.
const patience = 3

// measureMany measures the operators with many small providers, once.
func (s *setting) measureMany(ctx context.Context, r results) error {
	if s.many == 0 {
		return nil
	}

	var limit time.Duration // none for Capstan

	for _, program := range []string{capstan, before, peer} {
		if !slices.Contains(s.programs, program) {
			continue
		}

		measured, err := s.measureManyOf(ctx, program, limit)
		if err != nil {
			err = fmt.Errorf("%d small providers, %s: %w", s.many, program, err)
			if program != peer || ctx.Err() != nil {
				return err
			}

			s.leaveOut(r, peer, err)

			continue
		}

		r.add(program, measured)

		limit = max(time.Minute, patience*measured[installMany].took)
	}

	return nil
}

func (s *setting) measureManyOf(
	ctx context.Context, program string, limit time.Duration,
) (measured stageFigures, err error) {
	const podsPerNode = 100

	w, err := s.newSite(ctx, program, bed.Options{Nodes: 1 + s.many/podsPerNode})
	defer func() { err = errors.Join(err, w.stop()) }()

	if err != nil {
		return nil, err
	}

	if program == capstan {
		w.profiler = s.profiler
	}

	if err := w.run(ctx); err != nil {
		return nil, err
	}

	releases := smallProviders(s.many)
	if err := w.prepare(ctx, releases...); err != nil {
		return nil, err
	}

	missed, err := w.stageWithin(ctx, installMany, limit, func(ctx context.Context) error {
		for _, r := range releases {
			if err := w.client.Create(ctx, w.resource(r)); err != nil {
				return err
			}
		}

		return all(ctx, w.client, s.many, w.ready)
	})

	if err != nil || missed {
		return w.measured, err
	}

	return w.measured, w.restart(ctx, restartMany)
}
