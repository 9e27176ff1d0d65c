// Command ui measures what the status page of the operator costs: its memory, processor time and requests without the
// page, with it, and while pages are open, and how fast the first page is there. A provider changes each second, except
// where the table mentions it. `make bench-ui` runs it in the module's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bench/measure"
	"github.com/capstan-project/capstan/test/harness"
)

// address is where the operator serves the page.
const address = "127.0.0.1:19443"

func main() {
	providers := flag.Int("providers", 500, "number of small providers")
	viewers := flag.Int("viewers", 20, "number of open pages, each of another user")
	watch := flag.Duration("watch", 30*time.Second, "how long to measure")

	flag.Parse()
	ctrl.SetLogger(logr.Discard())

	harness.Main("ui", func(ctx context.Context) error { return run(ctx, *providers, *viewers, *watch) })
}

func run(ctx context.Context, providers, viewers int, watch time.Duration) (err error) {
	const podsPerNode = 100

	b, err := bed.Start(ctx, bed.Options{Nodes: 1 + providers/podsPerNode})
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, b.Stop()) }()

	c, err := harness.Prepare(ctx, b.Config(), ".")
	if err != nil {
		return err
	}

	m := &measurement{bed: b, client: c, watch: watch}

	return m.run(ctx, providers, viewers)
}

// measurement measures the operator on a control plane.
type measurement struct {
	bed      *bed.Bed
	client   client.Client
	watch    time.Duration
	operator *harness.Operator
	changed  []client.Object // the providers, of which one changes each second
}

func (m *measurement) run(ctx context.Context, providers, viewers int) error {
	if err := m.start(); err != nil {
		return err
	}

	if err := m.install(ctx, providers); err != nil {
		return errors.Join(err, m.operator.Stop())
	}

	fmt.Println("| | settled memory, MiB | CPU, s | requests | writes |\n|---|---:|---:|---:|---:|")

	if err := m.restart(ctx, "without the page"); err != nil {
		return err
	}

	page := "--ui-bind-address=" + address
	if err := m.restart(ctx, "with the page", page); err != nil {
		return err
	}

	err := m.open(ctx, viewers, func(ctx context.Context) error {
		name := fmt.Sprintf("with %d pages open", viewers)
		if err := m.measure(ctx, name+", and no changes", m.wait); err != nil {
			return err
		}

		return m.measure(ctx, name, m.change)
	})

	return errors.Join(err, m.operator.Stop())
}

// start starts the operator.
func (m *measurement) start(flags ...string) (err error) {
	m.operator, err = harness.StartOperator(
		m.bed, "bin/operator", filepath.Join(m.bed.Dir(), "operator.log"), flags...)

	return err
}

// restart starts the operator again with flags, and measures it. It keeps running after that.
func (m *measurement) restart(ctx context.Context, name string, flags ...string) error {
	if err := m.operator.Stop(); err != nil {
		return err
	}

	if err := m.start(flags...); err != nil {
		return err
	}

	if _, err := measure.Quiet(ctx, m.operator, measure.LongQuiet); err != nil {
		return err
	}

	return m.measure(ctx, name, m.change)
}

// measure prints what the operator uses while a function runs.
func (m *measurement) measure(ctx context.Context, name string, during func(context.Context) error) error {
	begin, cpu := time.Now(), m.operator.CPU()

	if err := during(ctx); err != nil {
		return err
	}

	requests, err := m.bed.Requests(func(r bed.Request) bool {
		return r.Received.After(begin) && !r.Lease() && (r.User == harness.OperatorUser || isViewer(r.User))
	})
	if err != nil {
		return err
	}

	fmt.Printf("| %s | %d | %.1f | %d | %d |\n",
		name, m.operator.Memory()>>20, (m.operator.CPU() - cpu).Seconds(), len(requests), measure.Writes(requests))

	return nil
}
