package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// growth installs more and more small providers in one control plane, and measures the operator at
// each size.
type growth struct {
	bed       *bed.Bed
	client    client.Client
	operator  *harness.Operator
	idle      time.Duration
	profiles  string // the folder for profiles, or empty
	providers []*harness.Release
}

// run measures at each size, and measures a restart at the last one.
func (g *growth) run(ctx context.Context, sizes []int) (samples []sample, err error) {
	if err := g.start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.operator.Stop()) }()

	if _, err := g.quiet(ctx); err != nil {
		return nil, err
	}

	last := sample{}
	for _, size := range sizes {
		if last, err = g.measure(ctx, last, size); err != nil {
			return nil, err
		}

		fmt.Fprintf(os.Stderr, "%d providers: %.0f s, %.0f MiB\n", size, last.took.Seconds(), mebibytes(last.settled))
		samples = append(samples, last)
	}

	return samples, g.restart(ctx, &samples[len(samples)-1])
}

func (g *growth) start() error {
	var flags []string
	if g.profiles != "" {
		flags = append(flags, "--pprof-bind-address="+profiledAddress)
	}

	operator, err := harness.StartOperator(g.bed, "bin/operator", filepath.Join(g.bed.Dir(), "operator.log"), flags...)
	if err == nil {
		g.operator = operator
	}

	return err
}

// cpuSeconds is the metric of the processor time of a process.
const cpuSeconds = "process_cpu_seconds_total"

// measure installs the missing providers up to a size.
func (g *growth) measure(ctx context.Context, last sample, size int) (sample, error) {
	missing := g.providers[last.providers:size]
	for _, p := range missing {
		if err := p.Prepare(ctx, g.client); err != nil {
			return last, err
		}
	}

	before, err := g.server(ctx, cpuSeconds)
	if err != nil {
		return last, err
	}

	profiled := g.profile(ctx, size)
	begin := time.Now()

	if err := g.install(ctx, missing, size); err != nil {
		return last, err
	}

	now := sample{providers: size, took: last.took + time.Since(begin)}
	after, err := g.server(ctx, cpuSeconds)

	now.serverCPU = last.serverCPU + after - before
	if err := errors.Join(err, profiled()); err != nil {
		return last, err
	}

	err = g.rest(ctx, &now)

	return now, err
}

// install creates providers and waits until all of them, including existing ones, are Ready.
func (g *growth) install(ctx context.Context, missing []*harness.Release, all int) error {
	for _, p := range missing {
		if err := g.client.Create(ctx, p.Resource()); err != nil {
			return err
		}
	}

	return g.allReady(ctx, all)
}

// rest measures the operator's resources, and its activity while nothing happens.
func (g *growth) rest(ctx context.Context, s *sample) error {
	settled, err := g.quiet(ctx)
	if err != nil {
		return err
	}

	s.cpu = g.operator.CPU()
	pause(ctx, g.idle)
	s.idleCPU, s.peak, s.settled = g.operator.CPU()-s.cpu, g.operator.PeakMemory(), g.operator.Memory()

	requests, err := g.requests()
	if err != nil {
		return err
	}

	s.requests = bed.Count(requests, func(r bed.Request) string { return r.Verb })
	s.writes = writes(requests)
	s.idleWrites = writes(since(requests, settled))
	s.serverMemory, err = g.server(ctx, "process_resident_memory_bytes")

	return err
}

// restart measures a new operator that finds everything installed.
func (g *growth) restart(ctx context.Context, s *sample) error {
	if err := g.operator.Stop(); err != nil {
		return err
	}

	begin := time.Now()

	if err := g.start(); err != nil {
		return err
	}

	quiet, err := g.quiet(ctx)
	if err != nil {
		return err
	}

	requests, err := g.requests()
	if err != nil {
		return err
	}

	requests = since(requests, begin)
	s.restart = restart{quiet.Sub(begin), g.operator.CPU(), g.operator.PeakMemory(), len(requests), writes(requests)}

	return nil
}

// requests returns the operator's requests so far.
func (g *growth) requests() ([]bed.Request, error) {
	return g.bed.Requests(func(r bed.Request) bool { return r.User == harness.OperatorUser })
}

func since(requests []bed.Request, begin time.Time) []bed.Request {
	var later []bed.Request

	for _, r := range requests {
		if r.Received.After(begin) {
			later = append(later, r)
		}
	}

	return later
}

func writes(requests []bed.Request) int {
	n := 0

	for _, r := range requests {
		if r.Write() {
			n++
		}
	}

	return n
}

// allReady polls until that many resources are Ready. The more there are, the longer the interval,
// since polling is work for the API server, too.
func (g *growth) allReady(ctx context.Context, wanted int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(wanted)*2*time.Second)
	defer cancel()

	for {
		ready, waiting := 0, ""

		for _, t := range []v1alpha2.ProviderType{v1alpha2.CoreProviderType, v1alpha2.InfrastructureProviderType} {
			list := t.NewList()
			if err := g.client.List(ctx, list); err != nil {
				return fmt.Errorf("not all of %d are ready: %w", wanted, err)
			}

			for _, p := range list.GetItems() {
				if conditions.IsReady(p) {
					ready++
				} else {
					waiting = v1alpha2.Label(p) + ": " + conditions.GetMessage(p, v1alpha2.ReadyCondition)
				}
			}
		}

		if ready == wanted {
			return nil
		}

		pause(ctx, 20*time.Millisecond+time.Duration(wanted)*2*time.Millisecond)

		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%d of %d are ready; another: %s: %w", ready, wanted, waiting, err)
		}
	}
}

// The operator is quiet when it has used almost no processor time for quietSeconds.
const (
	quietSeconds = 5
	quietMost    = 100 * time.Millisecond
)

// quiet waits until the operator is quiet, and returns since when.
func (g *growth) quiet(ctx context.Context) (time.Time, error) {
	var taken []time.Duration // at each second
	for {
		taken = append(taken, g.operator.CPU())
		if n := len(taken) - 1; n >= quietSeconds && taken[n]-taken[n-quietSeconds] < quietMost {
			return time.Now().Add(-quietSeconds * time.Second), nil
		}

		pause(ctx, time.Second)

		if ended, err := g.operator.Exited(); ended {
			return time.Time{}, fmt.Errorf("the operator has ended: %w", err)
		}

		if err := ctx.Err(); err != nil {
			return time.Time{}, err
		}
	}
}

// server reads one of the API server's own metrics, one without labels.
func (g *growth) server(ctx context.Context, metric string) (value float64, err error) {
	c, err := kubernetes.NewForConfig(g.bed.Config())
	if err != nil {
		return 0, err
	}

	metrics, err := c.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}

	for line := range strings.Lines(string(metrics)) {
		if n, _ := fmt.Sscanf(line, metric+" %g", &value); n == 1 {
			return value, nil
		}
	}

	return 0, fmt.Errorf("the API server has no metric %s", metric)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
