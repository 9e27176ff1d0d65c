// Command mirror measures how fast `capstan mirror` writes images to an archive and copies them
// from there to a registry. It compares with crane on the same machine, and measures a mirror of
// all providers' charts. `make bench` runs it in the module's root.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/bench/report"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/image"
	"github.com/capstan-project/capstan/test/testproviders"
)

// The image has layers of layerSize. They are random, so compression does not help.
const layers, layerSize = 4, 64 << 20

func main() {
	runs := flag.Int("runs", 3, "number of measurements of each; the table shows the median")
	write := flag.String("write", "", "page to write the table into")

	flag.Parse()

	harness.Main("bench", func(ctx context.Context) error {
		return run(ctx, *runs, *write)
	})
}

// figure is the result of one command.
type figure struct {
	took   time.Duration
	memory int64 // maximum resident memory, in bytes
}

// setting is the environment of all commands.
type setting struct {
	dir, capstan, crane, ca string
	image                   string
	registry                *bed.Registry
}

func run(ctx context.Context, runs int, write string) error {
	dir, err := os.MkdirTemp("", "capstan-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	s, err := newSetting(ctx, dir)
	if err != nil {
		return err
	}
	defer s.registry.Stop()

	measured := map[string][]figure{}

	for i := range runs {
		for _, c := range s.commands(i) {
			f, err := s.measure(ctx, c.args)
			if err != nil {
				return err
			}

			measured[c.name] = append(measured[c.name], f)
		}
	}

	size := fmt.Sprintf("%d MiB in %d layers", layers*layerSize>>20, layers)
	table := &report.Table{Header: []string{size, "MB/s", "time ÷ crane's", "peak memory"}, Numbers: 1}
	ratio := func(name, baseline string) report.Range {
		return report.Ratios(seconds(measured[name]), seconds(measured[baseline]))
	}

	for _, c := range s.commands(0) {
		f := median(measured[c.name])

		rate := fmt.Sprintf("%.0f", layers*layerSize/1e6/f.took.Seconds())
		if c.charts {
			rate = fmt.Sprintf("%.2f s", f.took.Seconds())
		}

		table.Add(c.name, rate, ratio(c.name, c.baseline).String(2), fmt.Sprintf("%d MB", f.memory/1e6))
	}

	goals := report.Goals([]report.Goal{
		{Name: pull + ": time ÷ crane's", Limit: 2, Places: 2, Measured: ratio(pull, cranePull)},
	})

	fmt.Printf("%s\n%s\n", table.Text(), goals.Text())

	if write == "" {
		return nil
	}

	return report.Write(write, "mirror", table.Markdown())
}

func newSetting(ctx context.Context, dir string) (*setting, error) {
	set, err := tools.Find()
	if err != nil {
		return nil, err
	}

	s := &setting{
		dir:     dir,
		capstan: filepath.Join(dir, "capstan"),
		crane:   set.Program(tools.Crane),
		ca:      filepath.Join(dir, "ca.crt"),
	}

	build := exec.CommandContext(ctx, "go", "build", "-o", s.capstan, "./cmd/capstan")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build capstan: %w\n%s", err, out)
	}

	if err := os.Mkdir(filepath.Join(dir, "registry"), 0o755); err != nil {
		return nil, err
	}

	if s.registry, err = bed.RunRegistry(
		ctx,
		bed.RegistryOptions{Dir: filepath.Join(dir, "registry"), TLS: true},
	); err != nil {
		return nil, err
	}

	if err := os.WriteFile(s.ca, s.registry.CA, 0o600); err != nil {
		return nil, err
	}

	client, err := oci.NewClient(oci.Options{CA: s.registry.CA})
	if err != nil {
		return nil, err
	}

	s.image = s.registry.Address + "/bench/image:v1"

	ref, err := oci.ParseImage(s.image)
	if err != nil {
		return nil, err
	}

	content := make([][]byte, layers)
	for i := range content {
		content[i] = image.Random(layerSize, uint64(i))
	}

	_, err = image.Push(ctx, client, ref, nil, content...)
	clear(content)
	// On Linux, a child's peak memory starts with its parent's.
	debug.FreeOSMemory()

	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // fails on other systems, which have no such file

	return s, err
}

// command is one command to measure.
type command struct {
	name     string
	args     []string
	charts   bool   // it copies charts instead of the image
	baseline string // the name of crane's command that does the same, if there is one
}

// Names of commands that others refer to.
const (
	cranePull = "pull: crane pull --format=oci"
	cranePush = "push: crane push"
	pull      = "pull: capstan mirror --to archive"
)

// commands returns the commands of a run. Each run has its own files and repositories, so nothing
// exists yet.
func (s *setting) commands(run int) []command {
	at := func(name string) string { return filepath.Join(s.dir, fmt.Sprintf("%s-%d", name, run)) }
	to := func(name string) string { return fmt.Sprintf("%s/%s-%d", s.registry.Address, name, run) }
	folder, _ := testproviders.FolderOrSamples(".")

	labels, _ := filepath.Glob(filepath.Join(folder, "*-*"))
	for i, label := range labels {
		labels[i] = filepath.Base(label)
	}

	charts := slices.Concat(
		[]string{s.capstan, "mirror", "--source", folder, "--charts-only", "--to", at("charts") + ".tar"},
		labels,
	)

	return []command{
		{name: cranePull, args: []string{s.crane, "pull", "--format=oci", s.image, at("crane")}},
		{
			name: pull, baseline: cranePull,
			args: []string{s.capstan, "mirror", "--image", s.image, "--to", at("mirror") + ".tar", "--registry-ca", s.ca},
		},
		{name: cranePush, args: []string{s.crane, "push", at("crane"), to("crane") + ":v1"}},
		{
			name: "push: capstan mirror --archive", baseline: cranePush,
			args: []string{
				s.capstan,
				"mirror",
				"--archive",
				at("mirror") + ".tar",
				"--to",
				"oci://" + to("mirror"),
				"--registry-ca",
				s.ca,
			},
		},
		{name: fmt.Sprintf("charts of %d providers, built and archived", len(labels)), args: charts, charts: true},
		{
			name: "the same charts, copied to a registry",
			args: []string{
				s.capstan,
				"mirror",
				"--archive",
				at("charts") + ".tar",
				"--to",
				"oci://" + to("charts"),
				"--registry-ca",
				s.ca,
			},
			charts: true,
		},
	}
}

func (s *setting) measure(ctx context.Context, args []string) (figure, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)

	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+s.ca) // the authority's certificate for crane
	began := time.Now()

	out, err := cmd.CombinedOutput()
	if err != nil {
		return figure{}, fmt.Errorf("%s: %w\n%s", filepath.Base(args[0]), err, out)
	}

	f := figure{took: time.Since(began)}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		f.memory = usage.Maxrss << 10
	}

	return f, nil
}

// seconds returns the times of figures.
func seconds(all []figure) []float64 {
	times := make([]float64, len(all))
	for i, f := range all {
		times[i] = f.took.Seconds()
	}

	return times
}

// median returns the figure with the median time.
func median(all []figure) figure {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b figure) int { return int(a.took - b.took) })
	return sorted[len(sorted)/2]
}
