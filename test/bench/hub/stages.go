package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bench/measure"
	"github.com/capstan-project/capstan/test/bench/report"
	"github.com/capstan-project/capstan/test/harness"
)

// settling is how long the operators are still measured after the last provider is Ready.
const settling = 10 * time.Second

// measure measures all stages.
func (h *hub) measure(ctx context.Context) (r result, err error) {
	r.targets = h.size

	if r.install, err = h.stage(ctx, "install", func() error {
		for _, p := range h.providers {
			if err := h.here.Create(ctx, p); err != nil {
				return err
			}
		}

		return h.allRun(ctx, older)
	}, settling); err != nil {
		return r, err
	}

	if r.idle, err = h.stage(ctx, "idle", func() error { return nil }, h.idle); err != nil {
		return r, err
	}

	if r.upgrade, err = h.stage(ctx, "upgrade", func() error {
		change := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"version": %q}}`, newer))

		for _, p := range h.providers {
			if err := h.here.Patch(ctx, p, change); err != nil {
				return err
			}
		}

		return h.allRun(ctx, newer)
	}, settling); err != nil {
		return r, err
	}

	r.drift, err = h.drift(ctx)

	return r, err
}

func (h *hub) allRun(ctx context.Context, version string) error {
	return measure.All(ctx, h.here, len(h.providers), func(p v1alpha2.Provider) bool { return measure.Runs(p, version) })
}

// stage measures the operators while something is done, and for some time after that.
func (h *hub) stage(ctx context.Context, name string, do func() error, after time.Duration) ([]figures, error) {
	before := make([]figures, len(h.shards))

	for i, s := range h.shards {
		s.operator.ResetPeakMemory()

		before[i] = figures{cpu: s.operator.CPU(), bytes: s.bytes()}
	}

	begin := time.Now()

	if err := do(); err != nil {
		return nil, err
	}

	took := time.Since(begin)

	measure.Pause(ctx, after)

	if err := h.running(); err != nil {
		return nil, err
	}

	all := make([]figures, len(h.shards))

	for i, s := range h.shards {
		local, err := measure.Requests(h.bed, s.user, begin)
		if err != nil {
			return nil, err
		}

		remote := h.seen.to(s.targets, begin)
		all[i] = figures{
			took: took, cpu: s.operator.CPU() - before[i].cpu,
			peak: s.operator.PeakMemory(), settled: s.operator.Memory(),
			remote: len(remote), remoteWrites: measure.Writes(remote), bytes: s.bytes() - before[i].bytes,
			local: len(local), localWrites: measure.Writes(local),
		}

		if err := h.list(fmt.Sprintf("%s-%s-%d-targets.txt", s.user, name, h.size), remote, local); err != nil {
			return nil, err
		}
	}

	return all, ctx.Err()
}

// list writes lists of requests into the folder of the logs, if there is one.
func (h *hub) list(name string, remote, local []bed.Request) error {
	if h.logs == "" {
		return nil
	}

	text := "targets\n" + measure.ByKind(remote) + "\nhub\n" + measure.ByKind(local)

	return os.WriteFile(filepath.Join(h.logs, name), []byte(text), 0o600)
}

func (s *shard) bytes() int64 {
	var sum int64
	for _, t := range s.targets {
		sum += t.bytes.Load()
	}

	return sum
}

// maxDrifts is the number of targets with drift.
const maxDrifts = 10

// drift scales a Deployment in several targets at once, behind their backs, and returns how many seconds it takes until
// each has its replicas again.
func (h *hub) drift(ctx context.Context) (report.Range, error) {
	const limit, every = 30 * time.Minute, 100 * time.Millisecond

	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	type scaled struct {
		deployment *appsv1.Deployment
		at         time.Time
	}

	var waiting []scaled

	count := min(h.size, maxDrifts)
	for i := range count {
		t := h.targets[i*h.size/count]
		name := objectName(t.token, harness.Standard[i%len(harness.Standard)].Label) + "-controller-manager"
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name}}

		waiting = append(waiting, scaled{d, time.Now()})

		if err := h.there.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"replicas": 2}}`)),
			client.FieldOwner("drift")); err != nil {
			return report.Range{}, err
		}
	}

	var took []float64

	for len(waiting) > 0 {
		var left []scaled

		for _, s := range waiting {
			if err := h.there.Get(ctx, client.ObjectKeyFromObject(s.deployment), s.deployment); err != nil {
				return report.Range{}, fmt.Errorf("drift of Deployment %s is not corrected: %w", s.deployment.Name, err)
			}

			if *s.deployment.Spec.Replicas == 1 {
				took = append(took, time.Since(s.at).Seconds())
			} else {
				left = append(left, s)
			}
		}

		waiting = left

		measure.Pause(ctx, every)
	}

	return report.NewRange(took), nil
}
