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
	"github.com/capstan-project/capstan/test/bench/measure"
	"github.com/capstan-project/capstan/test/harness"
)

// growth installs more and more small providers in one control plane, and measures the operator at
// each size.
type growth struct {
	bed       *bed.Bed
	client    client.Client
	operator  *harness.Operator
	idle      time.Duration
	profiler  measure.Profiler
	providers []*harness.Release
}

// run measures at each size, and measures a restart at the last one.
func (g *growth) run(ctx context.Context, sizes []int) (samples []sample, err error) {
	if err := g.start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.operator.Stop()) }()

	if _, err := measure.Quiet(ctx, g.operator, measure.LongQuiet); err != nil {
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
	log := filepath.Join(g.bed.Dir(), "operator.log")

	operator, err := harness.StartOperator(g.bed, "bin/operator", log, g.profiler.Flags()...)
	if err == nil {
		g.operator = operator
	}

	return err
}

// profilePeriod is how long the processor time is profiled while providers are being installed.
const profilePeriod = 20 * time.Second

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

	before, err := measure.ServerMetric(ctx, g.bed, cpuSeconds)
	if err != nil {
		return last, err
	}

	profiled := g.profiler.Start(ctx, strconv.Itoa(size), profilePeriod)
	begin := time.Now()

	if err := g.install(ctx, missing, size); err != nil {
		return last, err
	}

	now := sample{providers: size, took: last.took + time.Since(begin)}
	after, err := measure.ServerMetric(ctx, g.bed, cpuSeconds)

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

	return measure.AllReady(ctx, g.client, all)
}

// rest measures the operator's resources, and its activity while nothing happens.
func (g *growth) rest(ctx context.Context, s *sample) error {
	settled, err := measure.Quiet(ctx, g.operator, measure.LongQuiet)
	if err != nil {
		return err
	}

	s.cpu = g.operator.CPU()
	measure.Pause(ctx, g.idle)
	s.idleCPU, s.peak, s.settled = g.operator.CPU()-s.cpu, g.operator.PeakMemory(), g.operator.Memory()

	requests, err := measure.Requests(g.bed, harness.OperatorUser, time.Time{})
	if err != nil {
		return err
	}

	s.requests = bed.Count(requests, func(r bed.Request) string { return r.Verb })
	s.writes = measure.Writes(requests)
	s.idleWrites = measure.Writes(measure.Since(requests, settled))
	s.serverMemory, err = measure.ServerMetric(ctx, g.bed, "process_resident_memory_bytes")

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

	quiet, err := measure.Quiet(ctx, g.operator, measure.LongQuiet)
	if err != nil {
		return err
	}

	requests, err := measure.Requests(g.bed, harness.OperatorUser, time.Time{})
	if err != nil {
		return err
	}

	requests = measure.Since(requests, begin)
	s.restart = restart{
		quiet.Sub(begin), g.operator.CPU(), g.operator.PeakMemory(), len(requests), measure.Writes(requests),
	}

	return nil
}
