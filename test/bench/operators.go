package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// replicasAfter is the number of replicas after the change of a value.
const replicasAfter = 2

// driftTimeout is how long an operator may take to correct drift.
const driftTimeout = 10 * time.Second

// site is a control plane with an operator: one of Capstan's, or cluster-api-operator.
type site struct {
	*setting
	bed      *bed.Bed
	client   client.Client
	user     string // in the audit log
	start    func() (*harness.Operator, error)
	resource func(*harness.Release) v1alpha2.Provider
	ready    func(v1alpha2.Provider) bool
	operator *harness.Operator
	profiler profiler
	measured stageFigures
}

// newSite starts an operator on a new control plane. The caller must call stop, also if it fails.
func (s *setting) newSite(ctx context.Context, program string, options bed.Options) (*site, error) {
	b, err := bed.Start(ctx, options)
	if err != nil {
		return nil, err
	}

	w := &site{setting: s, bed: b, measured: stageFigures{}}
	log := filepath.Join(b.Dir(), "operator.log")

	if path := s.operator(program); path != "" {
		w.user, w.resource, w.ready = harness.OperatorUser, (*harness.Release).Resource, isReady
		w.start = func() (*harness.Operator, error) {
			return harness.StartOperator(b, path, log, w.profiler.Flags()...)
		}
		w.client, err = harness.Prepare(ctx, b.Config())

		return w, err
	}

	w.user, w.resource, w.ready = harness.PeerUser, peerResource, isInstalled

	if w.client, err = harness.NewClient(b.Config()); err != nil {
		return w, err
	}

	manager, err := harness.NewPeer(b.Dir())
	if err != nil {
		return w, err
	}

	w.start = func() (*harness.Operator, error) { return manager.Start(b, log) }

	return w, manager.Apply(ctx, w.client)
}

// peerResource returns the resource of cluster-api-operator, whose selector must match one ConfigMap only.
func peerResource(r *harness.Release) v1alpha2.Provider {
	p := r.PeerResource()
	p.GetSpec().FetchConfig.Selector.MatchLabels[v1alpha2.ConfigMapVersionLabel] = r.Bundle.Version

	return p
}

// stop stops the operator and the control plane.
func (w *site) stop() error {
	if w == nil {
		return nil
	}

	if w.operator == nil {
		return w.bed.Stop()
	}

	return errors.Join(w.operator.Stop(), w.bed.Stop())
}

// run starts the operator, and waits until it takes resources and is quiet.
func (w *site) run(ctx context.Context) (err error) {
	if w.operator, err = w.start(); err != nil {
		return err
	}

	probe := w.resource(w.older[0])
	probe.SetNamespace("default")

	// Its webhooks may not respond yet.
	if err := poll(ctx, func(ctx context.Context) (string, error) {
		if err := w.client.Create(ctx, probe.DeepCopyObject().(client.Object), client.DryRunAll); err != nil {
			return err.Error(), nil //nolint:nilerr // not yet
		}

		return "", nil
	}); err != nil {
		return fmt.Errorf("wait for the operator: %w", err)
	}

	_, err = quiet(ctx, w.operator, longQuiet)

	return err
}

// profilePeriod is how long processor time is profiled from the beginning of each stage.
const profilePeriod = 10 * time.Second

// shortQuiet is the period for Quiet after each stage: what an operator does later is not part of it.
const shortQuiet = 2 * time.Second

// stage measures a stage: the time until a function returns, and what the operator uses until it is quiet.
func (w *site) stage(ctx context.Context, s stage, do func(context.Context) error) error {
	_, err := w.stageWithin(ctx, s, 0, do)

	return err
}

// stageWithin is like stage, but the function has a limited time, unless that is 0. If it takes longer, the stage is
// missed, which is no error, and its figures are those until then.
func (w *site) stageWithin(
	ctx context.Context, s stage, limit time.Duration, do func(context.Context) error,
) (missed bool, err error) {
	limited := ctx

	if limit > 0 {
		var cancel context.CancelFunc

		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}

	profiled := w.profiler.Start(ctx, w.bed.Config(), string(s), profilePeriod)
	w.operator.ResetPeakMemory()

	serverCPU, err := serverCPU(ctx, w.bed)
	if err != nil {
		return false, err
	}

	begin, before := time.Now(), w.operator.CPU()

	err = do(limited)
	f := figures{took: time.Since(begin)}

	switch missed = err != nil && limited.Err() != nil && ctx.Err() == nil; {
	case missed:
		f.took, f.limit = 0, limit
	case err != nil:
		return false, fmt.Errorf("%s: %w", s, err)
	case s != idle:
		if _, err := quiet(ctx, w.operator, shortQuiet); err != nil {
			return false, err
		}
	}

	f.cpu, f.peak = w.operator.CPU()-before, w.operator.PeakMemory()

	if f.serverCPU, err = serverCPU(); err != nil {
		return missed, err
	}

	return missed, errors.Join(w.record(s, f, begin), profiled())
}

// record records the figures of a stage with the requests since its beginning.
func (w *site) record(s stage, f figures, begin time.Time) error {
	requests, err := requestsOf(w.bed, w.user, begin)
	if err != nil {
		return err
	}

	f.requests, f.writes = len(requests), writesOf(requests)
	w.measured[s] = f

	return w.profiler.WriteFile("requests-"+string(s)+".txt", byKind(requests)+"\n"+inOrder(requests, begin))
}

// restart measures a new process that finds everything installed, until it is quiet.
func (w *site) restart(ctx context.Context, s stage) error {
	if err := w.operator.Stop(); err != nil {
		return err
	}

	serverCPU, err := serverCPU(ctx, w.bed)
	if err != nil {
		return err
	}

	begin := time.Now()

	operator, err := w.start()
	if err != nil {
		return err
	}

	w.operator = operator

	quiet, err := quiet(ctx, operator, longQuiet)
	if err != nil {
		return err
	}

	f := figures{took: quiet.Sub(begin), cpu: operator.CPU(), peak: operator.PeakMemory()}
	if f.serverCPU, err = serverCPU(); err != nil {
		return err
	}

	return w.record(s, f, begin)
}

// prepare creates what the resources of releases refer to.
func (w *site) prepare(ctx context.Context, releases ...*harness.Release) error {
	for _, r := range releases {
		if err := r.Prepare(ctx, w.client); err != nil {
			return err
		}
	}

	return nil
}

// patch changes the spec of a release's resource.
func (w *site) patch(ctx context.Context, r *harness.Release, change func(*v1alpha2.ProviderSpec)) error {
	p := w.resource(r)
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}

	before := p.DeepCopyObject().(client.Object)

	change(p.GetSpec())

	return w.client.Patch(ctx, p, client.MergeFrom(before))
}

// awaitReady polls until the resources of releases are Ready with their versions, and their managers run.
func (w *site) awaitReady(ctx context.Context, releases []*harness.Release, replicas int32) error {
	for _, r := range releases {
		p := w.resource(r)

		if err := poll(ctx, func(ctx context.Context) (string, error) {
			if err := w.client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
				return "", err
			}

			if version := p.GetStatus().InstalledVersion; version == nil || *version != r.Bundle.Version || !w.ready(p) {
				return fmt.Sprintf("%s is not ready with %s: %s", v1alpha2.Label(p), r.Bundle.Version,
					conditions.GetMessage(p, v1alpha2.ReadyCondition)), nil
			}

			return "", nil
		}); err != nil {
			return err
		}
	}

	return awaitManagers(ctx, w.client, releases, replicas)
}

// isReady reports whether a resource is Ready as it is now.
func isReady(p v1alpha2.Provider) bool {
	return conditions.IsReady(p) && p.GetStatus().ObservedGeneration == p.GetGeneration()
}

// isInstalled reports whether cluster-api-operator has installed what a resource asks for. Its condition Ready may
// remain False although all managers are available, so only the managers show that they are.
func isInstalled(p v1alpha2.Provider) bool {
	return conditions.IsTrue(p, v1alpha2.ProviderInstalledCondition)
}
