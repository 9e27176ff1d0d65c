package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bench/measure"
	"github.com/capstan-project/capstan/test/harness"
)

// compareCRDs measures the time until the API server has accepted core's CRDs, applied by the
// operator's code and by kubectl.
func compareCRDs(ctx context.Context, core *harness.Release, runs int) error {
	c, err := chartgen.Build(core.Bundle)
	if err != nil {
		return err
	}

	size := 0
	for _, f := range c.CRDs {
		size += len(f.Data)
	}

	var ours, kubectl []time.Duration

	requests := 0

	for range runs {
		took, again, err := measureApplier(ctx, core, c.CRDs)
		if err != nil {
			return err
		}

		baseline, err := measureKubectlCRDs(ctx, c.CRDs)
		if err != nil {
			return err
		}

		ours, kubectl, requests = append(ours, took), append(kubectl, baseline), max(requests, again)
	}

	slices.Sort(ours)
	slices.Sort(kubectl)
	took, baseline := ours[runs/2], kubectl[runs/2]
	fmt.Printf(
		"\n%d CRDs of core %s, %.1f MB, until all are accepted: %.2f s, "+
			"kubectl apply --server-side %.2f s, ratio %.2f; "+
			"applied again: %d requests\n",
		len(c.CRDs),
		core.Bundle.Version,
		float64(size)/1e6,
		took.Seconds(),
		baseline.Seconds(),
		took.Seconds()/baseline.Seconds(),
		requests,
	)

	return nil
}

// measureApplier applies CRDs with the operator's code, and counts the requests of applying them
// again.
func measureApplier(
	ctx context.Context,
	core *harness.Release,
	files []chart.File,
) (took time.Duration, again int, err error) {
	b, err := bed.Start(ctx, bed.Options{})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()

	config, err := b.ConfigFor(harness.OperatorUser)
	if err != nil {
		return 0, 0, err
	}

	config.QPS = -1

	running, stop := context.WithCancel(ctx)
	defer stop()

	applier, err := newApplier(running, config)
	if err != nil {
		return 0, 0, err
	}

	request := crds.Request{
		Label:     core.Bundle.Provider.Label,
		Version:   core.Bundle.Version,
		Namespace: core.Namespace,
		Files:     files,
	}
	begin := time.Now()

	if _, err := apply(ctx, applier, request); err != nil {
		return 0, 0, err
	}

	took = time.Since(begin)

	for {
		pending, err := applier.NotServed(ctx, files)
		if err != nil {
			return 0, 0, err
		}

		if len(pending) == 0 {
			break
		}

		measure.Pause(ctx, 20*time.Millisecond)
	}

	second := time.Now()

	sent, err := apply(ctx, applier, request)
	if err != nil {
		return 0, 0, err
	}

	if len(sent) > 0 {
		return 0, 0, fmt.Errorf("%d CRDs were sent again", len(sent))
	}

	requests, err := measure.Requests(b, harness.OperatorUser, second)

	return took, len(requests), err
}

func newApplier(ctx context.Context, config *rest.Config) (*crds.Applier, error) {
	scheme := runtime.NewScheme()
	if err := crds.AddToScheme(scheme); err != nil {
		return nil, err
	}

	definitions, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: crds.StripSchemas})
	if err != nil {
		return nil, err
	}

	go func() { _ = definitions.Start(ctx) }() // returns when ctx ends

	if !definitions.WaitForCacheSync(ctx) {
		return nil, ctx.Err()
	}

	writer, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	applier := crds.NewApplier(crds.Clients{Metadata: writer, Client: definitions})
	// The first run waits until the watch has started, as it has in a running operator.
	_, err = applier.Plan(ctx, crds.Request{})

	return applier, err
}

func apply(ctx context.Context, applier *crds.Applier, request crds.Request) ([]string, error) {
	plan, err := applier.Plan(ctx, request)
	if err != nil {
		return nil, err
	}

	return applier.Apply(ctx, plan)
}

func measureKubectlCRDs(ctx context.Context, files []chart.File) (took time.Duration, err error) {
	b, err := bed.Start(ctx, bed.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()

	var text []byte
	for _, f := range files {
		text = append(append(text, "---\n"...), f.Data...)
	}

	name := filepath.Join(b.Dir(), "crds.yaml")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return 0, err
	}

	apply := b.Command(ctx, "kubectl", "apply", "--server-side", "-f", name)
	begin := time.Now()

	if out, err := apply.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("kubectl apply: %w\n%s", err, out)
	}

	return time.Since(begin), nil
}
