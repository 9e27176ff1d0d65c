// Command remote measures how much remote clusters that do not answer delay the providers elsewhere. It
// installs and upgrades twenty local providers: without remote clusters, and while the operator tries to
// reach sixty of them, on API servers that accept connections in silence, that drop all packets, and
// that answer after twenty seconds. `make bench-remote` runs it in the module's root.
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

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

func main() {
	pairs := flag.Int("pairs", 3, "number of measurements of each; the table shows the median")
	most := flag.Float64("most", 1.2, "fail if the local providers take more than this many times as long")
	logFile := flag.String("log", "", "file for the operator's log")

	flag.Parse()
	ctrl.SetLogger(logr.Discard())

	harness.Main("remote", func(ctx context.Context) error {
		return run(ctx, *pairs, *most, *logFile)
	})
}

func run(ctx context.Context, pairs int, most float64, logFile string) (err error) {
	b, err := bed.Start(ctx, bed.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()

	c, err := harness.Prepare(ctx, b.Config(), ".")
	if err != nil {
		return err
	}

	if logFile == "" {
		logFile = filepath.Join(b.Dir(), "operator.log")
	}

	operator, err := harness.StartOperator(b, "bin/operator", logFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, operator.Stop()) }()

	servers, err := newServers(b)
	if err != nil {
		return err
	}
	defer servers.close()

	m := &measurer{client: c, servers: servers}
	if err := m.prepare(ctx); err != nil {
		return err
	}

	return m.compare(ctx, pairs, most)
}

// compare measures in pairs, which begin with one and the other in turn, prints a table, and returns an
// error if the median ratio is larger than most.
func (m *measurer) compare(ctx context.Context, pairs int, most float64) error {
	// The first installation of all creates the CRDs, which the others find.
	if _, err := m.round(ctx); err != nil {
		return err
	}

	var without, with []times

	for i := range pairs {
		order := []func(context.Context) error{
			func(ctx context.Context) error { return appendTimes(ctx, &without, m.measure) },
			func(ctx context.Context) error { return appendTimes(ctx, &with, m.measureWithRemote) },
		}
		if i%2 == 1 {
			slices.Reverse(order)
		}

		for _, measure := range order {
			if err := measure(ctx); err != nil {
				return err
			}
		}

		fmt.Printf("pair %d: without remote clusters %s, with them %s\n", i+1, without[i], with[i])
	}

	return report(without, with, most)
}

func appendTimes(ctx context.Context, all *[]times, measure func(context.Context) (times, error)) error {
	t, err := measure(ctx)
	*all = append(*all, t)

	return err
}

// times are how long the local providers took.
type times struct{ install, upgrade time.Duration }

func (t times) String() string {
	return fmt.Sprintf("install %.2f s, upgrade %.2f s", t.install.Seconds(), t.upgrade.Seconds())
}

func report(without, with []times, most float64) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%d local providers\twithout remote clusters, s\twith %d unreachable ones, s\tratio of pairs\n",
		localProviders, 3*perServer)

	var failed error

	for _, step := range []struct {
		name string
		of   func(times) time.Duration
	}{
		{"install", func(t times) time.Duration { return t.install }},
		{"upgrade", func(t times) time.Duration { return t.upgrade }},
	} {
		n := len(without)
		a, b, ratios := make([]float64, n), make([]float64, n), make([]float64, n)

		for i := range n {
			a[i], b[i] = step.of(without[i]).Seconds(), step.of(with[i]).Seconds()
			ratios[i] = b[i] / a[i]
		}

		ratio := median(ratios)
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\n", step.name, median(a), median(b), ratio)

		if ratio > most {
			failed = errors.Join(failed, fmt.Errorf("%s: the ratio is %.2f, more than %.2f", step.name, ratio, most))
		}
	}

	return errors.Join(failed, w.Flush())
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
