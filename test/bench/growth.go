package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

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
	profiler  profiler
	providers []*harness.Release
}

// runGrowth measures at the sizes of the flag.
func runGrowth(ctx context.Context, o options) (err error) {
	sizes, err := sizesOf(o.sizes)
	if err != nil {
		return err
	}

	profiler, err := newProfiler(o.profile)
	if err != nil {
		return err
	}

	most := sizes[len(sizes)-1]

	const podsPerNode = 100

	b, err := bed.Start(ctx, bed.Options{Nodes: 1 + most/podsPerNode})
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, b.Stop()) }()

	c, err := harness.Prepare(ctx, b.Config())
	if err != nil {
		return err
	}

	g := &growth{bed: b, client: c, idle: o.idle, profiler: profiler, providers: smallProviders(most)}

	samples, err := g.run(ctx, sizes)
	if err == nil {
		printSamples(samples, o.idle)
	}

	return err
}

// run measures at each size, and measures a restart at the last one.
func (g *growth) run(ctx context.Context, sizes []int) (samples []sample, err error) {
	if err := g.start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.operator.Stop()) }()

	if _, err := quiet(ctx, g.operator, longQuiet); err != nil {
		return nil, err
	}

	last := sample{}
	for _, size := range sizes {
		if last, err = g.measure(ctx, last, size); err != nil {
			return nil, err
		}

		fmt.Fprintf(os.Stderr, "%d providers: %.0f s, %.0f MiB\n", size, last.took.Seconds(), inMebibytes(last.settled))
		samples = append(samples, last)
	}

	return samples, g.restart(ctx, &samples[len(samples)-1])
}

func (g *growth) start() error {
	log := filepath.Join(g.bed.Dir(), "operator.log")

	operator, err := harness.StartOperator(g.bed, "bin/operator", log, g.profiler.Flags()...)
	if err == nil {
		g.operator = operator
	}

	return err
}

// growthProfile is how long the processor time is profiled while providers are being installed.
const growthProfile = 20 * time.Second

// measure installs the missing providers up to a size.
func (g *growth) measure(ctx context.Context, last sample, size int) (sample, error) {
	missing := g.providers[last.providers:size]
	for _, p := range missing {
		if err := p.Prepare(ctx, g.client); err != nil {
			return last, err
		}
	}

	serverCPU, err := serverCPU(ctx, g.bed)
	if err != nil {
		return last, err
	}

	profiled := g.profiler.Start(ctx, g.bed.Config(), strconv.Itoa(size), growthProfile)
	begin := time.Now()

	if err := g.install(ctx, missing, size); err != nil {
		return last, err
	}

	now := sample{providers: size, took: last.took + time.Since(begin)}
	taken, err := serverCPU()

	now.serverCPU = last.serverCPU + taken
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

	return allReady(ctx, g.client, all)
}

// rest measures the operator's resources, and its activity while nothing happens.
func (g *growth) rest(ctx context.Context, s *sample) error {
	settled, err := quiet(ctx, g.operator, longQuiet)
	if err != nil {
		return err
	}

	s.cpu = g.operator.CPU()
	pause(ctx, g.idle)
	s.idleCPU, s.peak, s.settled = g.operator.CPU()-s.cpu, g.operator.PeakMemory(), g.operator.Memory()

	requests, err := requestsOf(g.bed, harness.OperatorUser, time.Time{})
	if err != nil {
		return err
	}

	s.requests = bed.Count(requests, func(r bed.Request) string { return r.Verb })
	s.writes = writesOf(requests)
	s.idleWrites = writesOf(since(requests, settled))
	s.serverMemory, err = serverMetric(ctx, g.bed, "process_resident_memory_bytes")

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

	quiet, err := quiet(ctx, g.operator, longQuiet)
	if err != nil {
		return err
	}

	requests, err := requestsOf(g.bed, harness.OperatorUser, time.Time{})
	if err != nil {
		return err
	}

	requests = since(requests, begin)
	s.restart = restarted{
		quiet.Sub(begin), g.operator.CPU(), g.operator.PeakMemory(), len(requests), writesOf(requests),
	}

	return nil
}
