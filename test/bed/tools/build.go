package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capstan-project/capstan/test/bed/internal/filelock"
)

// buildFlags are used for every program, and by the Makefile for everything else, so that packages
// are shared. The linker drops debug information anyway; not generating it saves a sixth of the
// compile time.
var buildFlags = []string{"-trimpath", "-gcflags=all=-dwarf=false"}

// Build builds what is missing in the set or was built from other pinned versions, and logs a line
// for each. It takes a few milliseconds and logs nothing if the set is up to date. Concurrent
// builds of several processes wait for each other. An interrupted build leaves only complete files.
func (s *Set) Build(ctx context.Context, log io.Writer) error {
	stale, err := s.stale()
	if err != nil || len(stale) == 0 {
		return err
	}

	if err := os.MkdirAll(s.Cache(), 0o755); err != nil {
		return fmt.Errorf("make the folder of the test bed's programs: %w", err)
	}

	lock, err := filelock.Acquire(ctx, filepath.Join(s.Cache(), "lock"), func() {
		fmt.Fprintln(log, "another process builds the test bed's programs; waiting for it")
	})
	if err != nil {
		return fmt.Errorf("build the test bed's programs: %w", err)
	}
	// The other process may have built everything meanwhile.
	if stale, err = s.stale(); err == nil && len(stale) > 0 {
		fmt.Fprintf(log, "%d programs and manifests of the test bed are missing or outdated\n", len(stale))
		err = s.makeAll(ctx, stale, log)
	}

	return errors.Join(err, lock.Release())
}

// makeAll builds several artifacts, few of them at the same time: one `go build` already uses all
// processors to compile, and two concurrent builds compile their shared packages twice. Concurrency
// helps only while a linker runs.
func (s *Set) makeAll(ctx context.Context, wanted []artifact, log io.Writer) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, runtime.NumCPU()/4))

	var mu sync.Mutex

	report := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()

		fmt.Fprintf(log, format+"\n", args...)
	}

	for _, a := range wanted {
		group.Go(func() error {
			start := time.Now()

			report("building %s", a.name)

			size, err := s.make(ctx, a, report)
			if err != nil {
				return fmt.Errorf("build %s: %w", a.name, err)
			}

			report("  %-24s %6.1f s %7.1f MB", a.name, time.Since(start).Seconds(), float64(size)/1e6)

			return nil
		})
	}

	return group.Wait()
}

// make builds or downloads an artifact and returns its size in bytes. It removes the stamp first and
// writes it last, so that a stamp always belongs to its file.
func (s *Set) make(ctx context.Context, a artifact, report func(format string, args ...any)) (int64, error) {
	recipe, err := s.recipe(a)
	if err != nil {
		return 0, err
	}

	partial := filepath.Join(s.Cache(), a.name+".partial")

	switch {
	case a.pkg == "":
		err = s.join(ctx, a, partial)
	case s.downloads(a):
		if err = s.download(ctx, a, partial); err != nil && ctx.Err() == nil {
			report("compiling everything, because a release cannot be downloaded: %v", err)
			s.releases.Store(nil)

			err = s.compile(ctx, a, partial)
		}
	default:
		err = s.compile(ctx, a, partial)
	}

	if err != nil {
		return 0, err
	}

	info, err := os.Stat(partial)
	if err != nil {
		return 0, err
	}

	if err := os.Remove(s.stampPath(a)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}

	if err := os.Rename(partial, s.path(a)); err != nil {
		return 0, err
	}

	return info.Size(), os.WriteFile(s.stampPath(a), []byte(recipe), 0o644)
}

// compile builds the program a into the file out.
func (s *Set) compile(ctx context.Context, a artifact, out string) error {
	ldflags, err := s.ldflags(ctx, a)
	if err != nil {
		return err
	}

	args := slices.Concat([]string{"build", "-mod=readonly"}, buildFlags, []string{"-ldflags", ldflags, "-o", out, a.pkg})
	_, err = s.goCommand(ctx, a, args...)

	return err
}

var placeholder = regexp.MustCompile(`\{(version|major|minor) of (.+)\}`)

func (s *Set) ldflags(ctx context.Context, a artifact) (string, error) {
	flags := "-s -w"

	for _, variable := range a.variables {
		if match := placeholder.FindStringSubmatch(variable); match != nil {
			version, err := s.version(ctx, a, match[2])
			if err != nil {
				return "", err
			}

			major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
			minor, _, _ := strings.Cut(rest, ".")
			value := map[string]string{"version": version, "major": major, "minor": minor}[match[1]]
			variable = placeholder.ReplaceAllLiteralString(variable, value)
		}

		flags += " -X " + variable
	}

	return flags, nil
}

// version returns the version of a module with which a is built.
func (s *Set) version(ctx context.Context, a artifact, module string) (string, error) {
	return s.goCommand(ctx, a, "list", "-mod=readonly", "-m", "-f", "{{.Version}}", module)
}

// join concatenates the manifests of a into the file out, ordered by pattern and name.
func (s *Set) join(ctx context.Context, a artifact, out string) error {
	if _, err := s.goCommand(ctx, a, "mod", "download", a.module); err != nil {
		return err
	}

	dir, err := s.goCommand(ctx, a, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", a.module)
	if err != nil {
		return err
	}

	var stream bytes.Buffer

	for _, pattern := range a.files {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}

		if len(paths) == 0 {
			return fmt.Errorf("module %s has no file %s anymore; fix the pattern in package tools", a.module, pattern)
		}

		for _, path := range paths {
			manifest, err := os.ReadFile(path)
			if err != nil {
				return err
			}

			fmt.Fprintf(&stream, "---\n%s\n", bytes.TrimSpace(bytes.TrimPrefix(manifest, []byte("---\n"))))
		}
	}

	return os.WriteFile(out, stream.Bytes(), 0o644)
}

// goCommand runs the go command in the module that pins a, and returns its standard output.
func (s *Set) goCommand(ctx context.Context, a artifact, args ...string) (string, error) {
	work, err := s.workspace(a)
	if err != nil {
		return "", err
	}

	file := "off"
	if work != nil {
		file = work.file
	}

	var stdout, stderr bytes.Buffer

	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.pins(a)

	// Flags of the environment, or of `go env -w`, which an empty GOFLAGS does not replace, would make the programs differ
	// from those of other checkouts. Less frequent garbage collections save an eighth of the compilers' CPU time.
	cmd.Env = append(
		os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOWORK="+file, "GOGC=400", "GOMEMLIMIT=1GiB")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// An interrupt lets the go command stop its compilers; a kill would leave them running.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }

	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("`go %s` in %s: %w\n%s", strings.Join(args, " "), cmd.Dir, err, tail(stderr.String()))
	}

	return strings.TrimSpace(stdout.String()), nil
}

// tail returns the end of a compiler's output, which usually contains the cause.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
