// Command bench measures what an operator does in its life with five real providers: install, change, correct,
// upgrade, roll back, idle and restart; and the same with many small ones. Each round measures Capstan, `kubectl
// apply` of the same manifests, and their CRDs alone, each on a new control plane, and cluster-api-operator, too, if
// the variable PEER names its manager, and another build of Capstan's operator if BEFORE names one. It prints the table
// of docs/performance.md. `make bench` runs it in the module's root.
//
// With -sizes, it measures instead how the operator's memory, processor time and requests grow with the number of small
// providers in one control plane, as `make bench-scale` does.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/test/harness"
)

// options are the command's flags.
type options struct {
	rounds, many  int
	idle          time.Duration
	markdown      bool
	only, profile string
	before        string
	sizes         string
}

func main() {
	var o options

	flag.IntVar(&o.rounds, "rounds", 3, "number of measurements of each program; the tables have their medians")
	flag.IntVar(&o.many, "many", 100, "number of small providers to measure once; 0 measures none")
	flag.DurationVar(&o.idle, "idle", time.Minute,
		"how long to watch the idle operators in the last round, or at each size")
	flag.StringVar(&o.only, "only", "", "programs to measure, with commas between them: "+strings.Join(programs, ", "))
	flag.BoolVar(&o.markdown, "markdown", false, "print the tables as Markdown")
	flag.StringVar(&o.profile, "profiles", "",
		"folder for profiles of Capstan and lists of its requests, of each stage in the first round; the figures suffer")

	flag.StringVar(&o.before, "before", os.Getenv("BEFORE"), "operator of another build, to measure in the same rounds")

	flag.StringVar(&o.sizes, "sizes", "", "numbers of small providers to measure the growth with, ascending, with commas "+
		"between them; a single number creates all of them at once. Nothing else is measured then")

	flag.Parse()
	ctrl.SetLogger(logr.Discard())

	harness.Main("bench", func(ctx context.Context) error { return run(ctx, o) })
}

func run(ctx context.Context, o options) error {
	if o.sizes != "" {
		return runGrowth(ctx, o)
	}

	s, err := newSetting(ctx, o)
	if err != nil {
		return err
	}

	r := results{}

	for round := range o.rounds {
		if err := s.round(ctx, round, r); err != nil {
			return err
		}
	}

	if err := s.measureMany(ctx, r); err != nil {
		return err
	}

	format := (*Table).Text
	if s.markdown {
		format = (*Table).Markdown
	}

	fmt.Println(s.tables(r, format))

	return nil
}

// round measures every program once. Rounds begin with the first program and the last one in turn.
func (s *setting) round(ctx context.Context, round int, r results) error {
	order := slices.Clone(s.programs)
	if round%2 == 1 {
		slices.Reverse(order)
	}

	for _, program := range order {
		measured, err := s.measure(ctx, program, round)
		if err != nil {
			err = fmt.Errorf("round %d, %s: %w", round+1, program, err)
			if program != peer || ctx.Err() != nil {
				return err
			}

			s.leaveOut(r, peer, err)

			continue
		}

		r.add(program, measured)
		fmt.Fprintf(os.Stderr, "round %d of %d, %s: %s\n", round+1, s.rounds, program, measured)
	}

	return nil
}

// leaveOut removes a program from the results and from what follows, so that its failure does not cost the others.
func (s *setting) leaveOut(r results, program string, err error) {
	fmt.Fprintln(os.Stderr, "bench: leaving out", program+":", err)
	delete(r, program)

	s.programs = slices.DeleteFunc(s.programs, func(p string) bool { return p == program })
}

func (s *setting) measure(ctx context.Context, program string, round int) (stageFigures, error) {
	last := round == s.rounds-1

	switch program {
	case floor:
		return s.measureFloor(ctx)
	case kubectl:
		return s.measureKubectl(ctx)
	default:
		profiler := profiler{}
		if round == 0 {
			profiler = s.profiler
		}

		return s.measureOperator(ctx, program, profiler, last)
	}
}
