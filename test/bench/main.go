// Command bench measures the time until five providers are ready, the requests to the API server,
// the operator's CPU time and memory, and what the operator writes while nothing happens. It compares with
// `kubectl apply` of the same objects on the same machine. `make bench` runs it in the module's
// root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

func main() {
	runs := flag.Int("runs", 3, "number of measurements of each; the table shows the median")
	only := flag.Bool("crds", false, "measure only the CRDs of core")
	idle := flag.Duration("idle", time.Minute, "how long to watch the idle operator in the last run")

	flag.Parse()
	ctrl.SetLogger(logr.Discard())

	harness.Main("bench", func(ctx context.Context) error {
		return run(ctx, *runs, *idle, *only)
	})
}

// figures are the results of one run of the operator.
type figures struct {
	ready      time.Duration
	cpu        time.Duration // of the operator
	requests   int
	memory     int64
	idleWrites int
}

func run(ctx context.Context, runs int, idle time.Duration, onlyCRDs bool) error {
	folder, real := testproviders.FolderOrSamples(".")
	if !real {
		fmt.Println(
			"PROVIDERS is not set: measuring small samples, which is hardly meaningful; set it to a folder of real releases",
		)
	}

	var releases []*harness.Release

	for _, wanted := range harness.Standard {
		release, err := harness.Load(ctx, folder, wanted)
		if err != nil {
			return err
		}

		releases = append(releases, release)
	}

	if onlyCRDs {
		return compareCRDs(ctx, releases[0], runs)
	}

	var (
		capstan []figures
		kubectl []time.Duration
	)

	for i := range runs {
		watch := time.Duration(0)
		if i == runs-1 {
			watch = idle
		}

		f, err := measureOperator(ctx, releases, watch)
		if err != nil {
			return err
		}

		applied, err := measureKubectl(ctx, releases)
		if err != nil {
			return err
		}

		fmt.Printf("run %d: operator %.2f s, %.2f s of CPU, %.0f MB, kubectl %.2f s\n", i+1,
			f.ready.Seconds(), f.cpu.Seconds(), float64(f.memory)/1e6, applied.Seconds())
		capstan, kubectl = append(capstan, f), append(kubectl, applied)
	}

	report(capstan, kubectl, idle)

	return compareCRDs(ctx, releases[0], runs)
}

func report(capstan []figures, kubectl []time.Duration, idle time.Duration) {
	ratios := make([]float64, len(kubectl))
	for i := range kubectl {
		ratios[i] = capstan[i].ready.Seconds() / kubectl[i].Seconds()
	}

	slices.Sort(ratios)
	slices.SortFunc(capstan, func(a, b figures) int { return int(a.ready - b.ready) })
	slices.Sort(kubectl)
	median, baseline := capstan[len(capstan)/2], kubectl[len(kubectl)/2]
	last := slices.MaxFunc(capstan, func(a, b figures) int { return a.idleWrites - b.idleWrites })
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(
		w,
		"\nfive providers\toperator\tkubectl apply --server-side, file by file\tratio of pairs\n",
	)
	fmt.Fprintf(
		w,
		"seconds\t%.2f until all are Ready\t%.2f until all are applied\t%.2f\n",
		median.ready.Seconds(),
		baseline.Seconds(),
		ratios[len(ratios)/2],
	)
	fmt.Fprintf(w, "CPU seconds\t%.2f\t\t\n", median.cpu.Seconds())
	fmt.Fprintf(w, "API requests\t%d\t\t\n", median.requests)
	fmt.Fprintf(w, "peak memory\t%.0f MB\t\t\n", float64(median.memory)/1e6)
	fmt.Fprintf(w, "writes while idle for %s\t%d\t\t\n", idle, last.idleWrites)
	w.Flush()
}

// measureOperator measures the time from the creation of five resources until all are Ready, on a
// new control plane.
func measureOperator(ctx context.Context, releases []*harness.Release, idle time.Duration) (f figures, err error) {
	b, err := bed.Start(ctx, bed.Options{})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()

	c, err := harness.Prepare(ctx, b.Config(), ".")
	if err != nil {
		return f, err
	}

	operator, err := harness.StartOperator(b, "bin/operator", filepath.Join(b.Dir(), "operator.log"))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, operator.Stop()) }()

	for _, r := range releases {
		if err := r.Prepare(ctx, c); err != nil {
			return f, err
		}
	}

	if err := settled(ctx, b); err != nil {
		return f, err
	}

	before, err := requests(b, all)
	if err != nil {
		return f, err
	}

	begin, idleCPU := time.Now(), operator.CPU()

	for _, r := range releases {
		if err := c.Create(ctx, r.Resource()); err != nil {
			return f, err
		}
	}

	if err := allReady(ctx, c, releases); err != nil {
		return f, err
	}

	f.ready, f.cpu = time.Since(begin), operator.CPU()-idleCPU

	after, err := requests(b, all)
	if err != nil {
		return f, err
	}

	f.requests, f.memory = after-before, operator.PeakMemory()
	f.idleWrites, err = idleWrites(ctx, b, idle)

	return f, err
}

// measureKubectl measures the time to apply the same objects, one file for each provider, on a new
// control plane.
func measureKubectl(ctx context.Context, releases []*harness.Release) (took time.Duration, err error) {
	b, err := bed.Start(ctx, bed.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()

	var files []string

	for _, r := range releases {
		text, err := expr.Parse(string(r.Bundle.Components))
		if err != nil {
			return 0, err
		}

		expanded, err := text.Expand(r.Variables)
		if err != nil {
			return 0, err
		}

		file := filepath.Join(b.Dir(), r.Bundle.Provider.Label+".yaml")
		if err := os.WriteFile(file, []byte(expanded), 0o600); err != nil {
			return 0, err
		}

		files = append(files, file)
	}

	begin := time.Now()

	for _, file := range files {
		apply := b.Command(ctx, "kubectl", "apply", "--server-side", "-f", file)
		if out, err := apply.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("kubectl apply of %s: %w\n%s", file, err, out)
		}
	}

	return time.Since(begin), nil
}
