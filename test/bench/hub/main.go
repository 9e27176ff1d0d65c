// Command hub measures an operator that installs providers into many remote clusters: while it installs five small
// ones into each, while nothing happens, while it upgrades all of them at once, and until it corrects drift. With
// -operators, several operators share the clusters. Arguments after -- are further flags of the operators.
// `make bench-hub` runs it in the module's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/test/bench/measure"
	"github.com/capstan-project/capstan/test/bench/report"
	"github.com/capstan-project/capstan/test/harness"
)

// options are the command's flags.
type options struct {
	operators   int
	program     string
	flags       []string // of the operators
	idle, delay time.Duration
	logs        string
}

func main() {
	var o options

	list := flag.String("sizes", "1,10,50,200", "numbers of targets, ascending, each of which begins from scratch")
	write := flag.String("write", "", "page to write the tables into, between the markers hub-N for N operators")

	flag.IntVar(&o.operators, "operators", 1, "number of operators that share the targets by --watch-label-selector")
	flag.StringVar(&o.program, "operator", "bin/operator", "the operator's program")
	flag.DurationVar(&o.idle, "idle", 5*time.Minute, "how long to watch the idle operators at each size")
	flag.DurationVar(&o.delay, "delay", 0, "how long targets hold back each request")
	flag.StringVar(&o.logs, "logs", "", "folder for the operators' logs and lists of their requests")

	flag.Parse()
	ctrl.SetLogger(logr.Discard())

	o.flags = flag.Args()

	harness.Main("hub", func(ctx context.Context) error { return run(ctx, o, *list, *write) })
}

func run(ctx context.Context, o options, list, write string) error {
	sizes, err := measure.Sizes(list)
	if err != nil {
		return err
	}

	if last := sizes[len(sizes)-1]; o.operators < 1 || last > maxTargets {
		return fmt.Errorf("-operators %d -sizes %s: there can be one or more operators, and at most %d targets",
			o.operators, list, maxTargets)
	}

	var results []result

	for _, size := range sizes {
		measured, err := measureHub(ctx, o, size)
		if err != nil {
			return fmt.Errorf("%d targets: %w", size, err)
		}

		results = append(results, measured)
		fmt.Fprintln(os.Stderr, measured)
	}

	text := tables(results, o)
	fmt.Print(text)

	if write == "" {
		return nil
	}

	return report.Write(write, fmt.Sprintf("hub-%d", o.operators), text)
}

// measureHub measures a number of targets in new control planes.
func measureHub(ctx context.Context, o options, size int) (_ result, err error) {
	h := &hub{options: o, size: size}
	defer func() { err = errors.Join(err, h.stop()) }()

	if err := h.start(ctx); err != nil {
		return result{}, err
	}

	return h.measure(ctx)
}
