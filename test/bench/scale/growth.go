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
	"github.com/capstan-project/capstan/test/fleet"
)

// growth installs small providers into one control plane, more and more of them, and measures the operator on the way.
type growth struct {
	bed       *bed.Bed
	client    client.Client
	operator  *fleet.Operator
	idle      time.Duration
	profiles  string // a folder for profiles, or empty
	providers []*fleet.Release
}

// run measures at each size, and at the last one what a restart takes.
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

func (g *growth) start() (err error) {
	flags := []string{}
	if g.profiles != "" {
		flags = append(flags, "--metrics-bind-address="+profiledAddress)
	}
	g.operator, err = fleet.StartOperator(g.bed, "bin/operator", filepath.Join(g.bed.Dir(), "operator.log"), flags...)
	return err
}

// measure installs the providers that are missing to a size.
func (g *growth) measure(ctx context.Context, last sample, size int) (sample, error) {
	missing := g.providers[last.providers:size]
	for _, p := range missing {
		if err := p.Prepare(ctx, g.client); err != nil {
			return sample{}, err
		}
	}
	profiled := g.profile(ctx, size)
	serverBefore, err := g.serverCPU(ctx)
	if err != nil {
		return sample{}, err
	}
	begin := time.Now()
	for _, p := range missing {
		if err := g.client.Create(ctx, p.Resource()); err != nil {
			return sample{}, err
		}
	}
	if err := g.allReady(ctx, size); err != nil {
		return sample{}, err
	}
	now := sample{providers: size, took: last.took + time.Since(begin)}
	serverAfter, err := g.serverCPU(ctx)
	if err != nil {
		return sample{}, err
	}
	now.serverCPU = last.serverCPU + serverAfter - serverBefore
	if err := profiled(); err != nil {
		return sample{}, err
	}
	return now, g.rest(ctx, &now)
}

// rest measures what the operator has come to, and what it does while nothing happens.
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
	return nil
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

// requests are the operator's so far.
func (g *growth) requests() ([]bed.Request, error) {
	return g.bed.Requests(func(r bed.Request) bool { return r.User == fleet.OperatorUser })
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

// allReady polls until as many resources are Ready, the less often the more there are: the API server has other work.
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

// The operator is quiet once it has taken hardly any of a processor for quietSeconds.
const (
	quietSeconds = 5
	quietMost    = 100 * time.Millisecond
)

// quiet waits until the operator is, and says since when.
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

// serverCPU is the processor time that the API server has taken so far, by its own metrics.
func (g *growth) serverCPU(ctx context.Context) (time.Duration, error) {
	server, err := kubernetes.NewForConfig(g.bed.Config())
	if err != nil {
		return 0, err
	}
	metrics, err := server.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(metrics)) {
		var seconds float64
		if n, _ := fmt.Sscanf(line, "process_cpu_seconds_total %g", &seconds); n == 1 {
			return time.Duration(seconds * float64(time.Second)), nil
		}
	}
	return 0, errors.New("the API server does not tell its processor time")
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
