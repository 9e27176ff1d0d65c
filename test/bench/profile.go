package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/capstan-project/capstan/test/harness"
)

// profiler writes profiles of an operator into a folder. An empty profiler does nothing.
type profiler struct {
	folder, address string
}

// newProfiler makes the folder, unless it is empty.
func newProfiler(folder string) (profiler, error) {
	if folder == "" {
		return profiler{}, nil
	}

	if err := os.MkdirAll(folder, 0o755); err != nil {
		return profiler{}, err
	}

	port, err := harness.FreePort()

	return profiler{folder: folder, address: fmt.Sprint("127.0.0.1:", port)}, err
}

// Flags returns the flags of an operator to profile.
func (p profiler) Flags() []string {
	if p.folder == "" {
		return nil
	}

	return []string{"--pprof-bind-address=" + p.address}
}

// Start starts a CPU profile of some seconds, cpu-NAME.pb.gz, and returns a function that waits for its end and takes
// a heap profile, heap-NAME.pb.gz.
func (p profiler) Start(ctx context.Context, name string, period time.Duration) func() error {
	if p.folder == "" {
		return func() error { return nil }
	}

	done := make(chan error, 1)
	go func() {
		done <- p.save(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(period.Seconds())), "cpu-"+name)
	}()

	return func() error {
		return errors.Join(<-done, p.save(ctx, "/debug/pprof/heap?gc=1", "heap-"+name))
	}
}

// WriteFile writes another file next to the profiles.
func (p profiler) WriteFile(name, content string) error {
	if p.folder == "" {
		return nil
	}

	return os.WriteFile(filepath.Join(p.folder, name), []byte(content), 0o600)
}

func (p profiler) save(ctx context.Context, path, name string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return err
	}

	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()

	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the operator answered %s to %s", answer.Status, path)
	}

	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}

	return p.WriteFile(name+".pb.gz", string(data))
}
