// Command charts measures how many megabytes of components become a chart per CPU second, with `capstan
// chart build` and with the library, next to `clusterctl generate provider`, which does less: it prints
// the objects. It uses the newest release of each real provider with more than a megabyte, or a
// generated one. `make bench` runs it in the module's root.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/test/bench/report"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// minSize is the size of components in bytes from which a release is measured: the time of smaller ones
// is mostly that of starting a program.
const minSize = 1 << 20

func main() {
	runs := flag.Int("runs", 5, "number of measurements of each; the table shows the median")
	write := flag.String("write", "", "page to write the table into")

	flag.Parse()

	harness.Main("bench", func(ctx context.Context) error {
		return run(ctx, *runs, *write)
	})
}

// release is a version of a provider in a folder.
type release struct {
	folder  string // with all versions
	content *bundle.Bundle
}

func run(ctx context.Context, runs int, write string) error {
	dir, err := os.MkdirTemp("", "capstan-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	folder := os.Getenv(testproviders.Variable)
	if folder == "" {
		folder = filepath.Join(dir, "providers")
		if err := testproviders.WriteLarge(folder); err != nil {
			return err
		}
	}

	releases, err := largeReleases(ctx, folder)
	if err != nil {
		return err
	}

	measures, err := newMeasures(ctx, dir)
	if err != nil {
		return err
	}

	table := &report.Table{Header: []string{
		"MB/s of components per CPU second", "MB", "capstan chart build", "library", "clusterctl generate provider",
		"capstan/clusterctl",
	}, Numbers: 1}

	for _, r := range releases {
		var rates []float64

		for _, measure := range measures {
			rate, err := median(ctx, r, measure, runs)
			if err != nil {
				return err
			}

			rates = append(rates, rate)
		}

		row := []string{r.content.Provider.Label + " " + r.content.Version, fmt.Sprintf("%.2f", r.megabytes())}
		for _, value := range append(rates, rates[0]/rates[2]) {
			row = append(row, fmt.Sprintf("%.1f", value))
		}

		table.Add(row...)
	}

	fmt.Println(table.Text())

	if write == "" {
		return nil
	}

	return report.Write(write, "charts", table.Markdown())
}

// megabytes returns the size of the components.
func (r *release) megabytes() float64 { return float64(len(r.content.Components)) / 1e6 }

// largeReleases returns the newest version of each provider whose components are large.
func largeReleases(ctx context.Context, folder string) ([]*release, error) {
	folders, err := filepath.Glob(filepath.Join(folder, "*-*"))
	if err != nil {
		return nil, err
	}

	var releases []*release

	for _, folder := range folders {
		r, err := newest(ctx, folder)
		if err != nil {
			return nil, err
		}

		if len(r.content.Components) >= minSize {
			releases = append(releases, r)
		}
	}

	if len(releases) == 0 {
		return nil, fmt.Errorf("%s holds no release whose components have a megabyte", folder)
	}

	return releases, nil
}

// newest reads the newest version of a provider.
func newest(ctx context.Context, folder string) (*release, error) {
	directory, err := source.NewDirectory(folder)
	if err != nil {
		return nil, err
	}

	versions, err := directory.Versions(ctx)
	if err != nil {
		return nil, err
	}

	content, err := directory.Fetch(ctx, versions[0])

	return &release{folder: folder, content: content}, err
}

// median returns the megabytes per CPU second of the median of several runs, after one that is not
// counted.
func median(ctx context.Context, r *release, measure measure, runs int) (float64, error) {
	var took []time.Duration

	for range runs + 1 {
		cpu, err := measure(ctx, r)
		if err != nil {
			return 0, err
		}

		took = append(took, cpu)
	}

	took = took[1:]
	slices.Sort(took)

	return r.megabytes() / took[len(took)/2].Seconds(), nil
}
