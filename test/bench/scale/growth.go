package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/fleet"
)

// sizes are the numbers of providers at which the operator is measured, as far as they are asked for.
var sizes = []int{1, 10, 50, 100, 250, 500}

// sample is what the operator has come to with a number of providers. All but the idle figures add up from the start.
type sample struct {
	providers      int
	took           time.Duration // while providers were being installed
	cpu            time.Duration
	requests       map[string]int // by verb
	peak, settled  int64          // memory, in bytes
	idleCPU        time.Duration
	idleRequests   int
	idleWrites     int
	restarted      time.Duration // until a new operator had looked at all of them; the last sample only
	restartedPeak  int64
	restartedWrite int
}

func (s sample) allRequests() int {
	n := 0
	for _, count := range s.requests {
		n += count
	}
	return n
}

// growth installs small providers into one control plane, more and more of them, and measures the operator on the way.
type growth struct {
	bed      *bed.Bed
	client   client.Client
	operator *fleet.Operator
	idle     time.Duration
	profiles string // a folder for profiles, or empty
	releases []*fleet.Release
}

// scale measures growth up to a number of providers, writes a plot, and prints a table.
func scale(ctx context.Context, most int, idle time.Duration, plot, profiles string) (err error) {
	b, err := bed.Start(ctx, bed.Options{Nodes: 2 + most/100})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()
	c, err := fleet.NewClient(b.Config())
	if err != nil {
		return err
	}
	if err := fleet.InstallCRDs(ctx, c, "."); err != nil {
		return err
	}
	g := &growth{bed: b, client: c, idle: idle, profiles: profiles, releases: small(most)}
	if err := g.start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.operator.Stop()) }()
	samples, err := g.grow(ctx)
	if err != nil {
		return err
	}
	printSamples(samples, idle)
	if plot == "" {
		return nil
	}
	return os.WriteFile(plot, drawSamples(samples), 0o644) //nolint:gosec // a picture for everybody
}

func (g *growth) start() (err error) {
	flags := []string{}
	if g.profiles != "" {
		flags = append(flags, "--metrics-bind-address="+profiledAddress)
	}
	g.operator, err = fleet.StartOperator(g.bed, "bin/operator", filepath.Join(g.bed.Dir(), "operator.log"), flags...)
	return err
}

// grow measures at each size, and at the last one what a restart takes.
func (g *growth) grow(ctx context.Context) ([]sample, error) {
	if err := g.quiet(ctx); err != nil {
		return nil, err
	}
	var samples []sample
	last := sample{}
	for _, size := range append(sizesBelow(len(g.releases)), len(g.releases)) {
		next, err := g.measure(ctx, last, size)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "%d providers: %.0f s, %.0f MB\n", size, next.took.Seconds(), megabytes(next.settled))
		samples, last = append(samples, next), next
	}
	return samples, g.restart(ctx, &samples[len(samples)-1])
}

func sizesBelow(most int) []int {
	return slices.DeleteFunc(slices.Clone(sizes), func(size int) bool { return size >= most })
}

// measure installs the providers that are missing to a size.
func (g *growth) measure(ctx context.Context, last sample, size int) (sample, error) {
	missing := g.releases[last.providers:size]
	for _, r := range missing {
		if err := r.Prepare(ctx, g.client); err != nil {
			return sample{}, err
		}
	}
	profiled := g.profile(ctx, size)
	begin := time.Now()
	for _, r := range missing {
		if err := g.client.Create(ctx, r.Resource()); err != nil {
			return sample{}, err
		}
	}
	if err := g.allReady(ctx, size); err != nil {
		return sample{}, err
	}
	now := sample{providers: size, took: last.took + time.Since(begin)}
	if err := errors.Join(profiled(), g.quiet(ctx)); err != nil {
		return sample{}, err
	}
	settled, cpu := time.Now(), g.operator.CPU()
	pause(ctx, g.idle)
	now.cpu, now.idleCPU = cpu, g.operator.CPU()-cpu
	now.peak, now.settled = g.operator.PeakMemory(), g.operator.Memory()
	answered, err := g.bed.Requests(func(r bed.Request) bool { return r.User == fleet.OperatorUser })
	if err != nil {
		return sample{}, err
	}
	now.requests = bed.Count(answered, func(r bed.Request) string { return r.Verb })
	now.idleRequests, now.idleWrites = since(answered, settled)
	return now, nil
}

// since counts requests from a time on, and the writes among them.
func since(answered []bed.Request, begin time.Time) (all, writes int) {
	for _, r := range answered {
		if r.Received.After(begin) {
			all++
			if r.Write() {
				writes++
			}
		}
	}
	return all, writes
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
	if err := g.quiet(ctx); err != nil {
		return err
	}
	s.restarted, s.restartedPeak = time.Since(begin)-quietFor, g.operator.PeakMemory()
	answered, err := g.bed.Requests(func(r bed.Request) bool { return r.User == fleet.OperatorUser })
	_, s.restartedWrite = since(answered, begin)
	return err
}

// allReady polls until as many resources are Ready.
func (g *growth) allReady(ctx context.Context, wanted int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(wanted)*2*time.Second)
	defer cancel()
	for {
		ready, waiting := 0, ""
		for _, t := range []v1alpha2.ProviderType{v1alpha2.CoreProviderType, v1alpha2.InfrastructureProviderType} {
			list := t.NewList()
			if err := g.client.List(ctx, list); err != nil {
				return fmt.Errorf("%d of %d are ready; another: %s: %w", ready, wanted, waiting, err)
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
		pause(ctx, 200*time.Millisecond)
	}
}

// The operator is quiet once it has taken hardly any of a processor for quietFor.
const (
	quietFor  = 5 * time.Second
	quietMost = 100 * time.Millisecond
)

func (g *growth) quiet(ctx context.Context) error {
	for {
		before := g.operator.CPU()
		pause(ctx, quietFor)
		if ended, err := g.operator.Exited(); ended {
			return fmt.Errorf("the operator has ended: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if g.operator.CPU()-before < quietMost {
			return nil
		}
	}
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// printSamples prints the table of docs/scale.md.
func printSamples(samples []sample, idle time.Duration) {
	verbs := slices.Sorted(maps.Keys(samples[len(samples)-1].requests))
	fmt.Printf("| providers | until Ready, s | CPU, s | peak memory, MB | settled, MB | requests | %s | writes in %s idle | CPU then, s |\n", strings.Join(verbs, " | "), idle)
	fmt.Println("|" + strings.Repeat("---:|", 8+len(verbs)))
	for _, s := range samples {
		fmt.Printf("| %d | %.1f | %.1f | %.0f | %.0f | %d |", s.providers, s.took.Seconds(), s.cpu.Seconds(), megabytes(s.peak), megabytes(s.settled), s.allRequests())
		for _, verb := range verbs {
			fmt.Printf(" %d |", s.requests[verb])
		}
		fmt.Printf(" %d | %.2f |\n", s.idleWrites, s.idleCPU.Seconds())
	}
	last := samples[len(samples)-1]
	fmt.Printf("\nrestarted with %d providers: %.1f s until quiet, %.0f MB at most, %d writes\n", last.providers, last.restarted.Seconds(), megabytes(last.restartedPeak), last.restartedWrite)
}
