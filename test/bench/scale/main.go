// Command scale measures how the operator's memory, processor time and requests grow with the
// number of providers. The small providers are in twenty namespaces of one control plane. It prints
// the table of docs/performance.md and draws docs/scale.svg. `make bench-scale` runs it in the module's
// root.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bench/measure"
	"github.com/capstan-project/capstan/test/harness"
)

func main() {
	list := flag.String(
		"sizes",
		"1,10,50,100,250,500",
		"numbers of providers to measure, ascending; a single number creates all of them at once",
	)
	idle := flag.Duration("idle", time.Minute, "how long to watch the idle operator at each size")
	plot := flag.String("plot", "", "file for an SVG plot")
	profiles := flag.String("profiles", "", "folder for profiles of the operator")

	flag.Parse()
	ctrl.SetLogger(logr.Discard())

	harness.Main("scale", func(ctx context.Context) error {
		return run(ctx, *list, *idle, *plot, *profiles)
	})
}

func run(ctx context.Context, list string, idle time.Duration, plot, profiles string) (err error) {
	sizes, err := measure.Sizes(list)
	if err != nil {
		return err
	}

	profiler, err := measure.NewProfiler(profiles)
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

	c, err := harness.Prepare(ctx, b.Config(), ".")
	if err != nil {
		return err
	}

	g := &growth{bed: b, client: c, idle: idle, profiler: profiler, providers: measure.Small(most)}

	samples, err := g.run(ctx, sizes)
	if err != nil {
		return err
	}

	printSamples(samples, idle)

	if plot == "" {
		return nil
	}

	return os.WriteFile(plot, draw(samples), 0o644)
}
