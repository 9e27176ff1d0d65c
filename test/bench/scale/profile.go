package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// profiledAddress is where a profiled operator serves pprof.
const profiledAddress = "127.0.0.1:18080"

// profileSeconds is how long the processor time is profiled while providers are being installed.
const profileSeconds = 20

// profile starts a CPU profile, and returns functions that end it and that take a heap profile.
// Both do nothing without a folder.
func (g *growth) profile(ctx context.Context, size int) func() error {
	if g.profiles == "" {
		return func() error { return nil }
	}

	done := make(chan error, 1)
	go func() {
		done <- save(
			ctx,
			fmt.Sprintf("/debug/pprof/profile?seconds=%d", profileSeconds),
			filepath.Join(g.profiles, fmt.Sprintf("cpu-%d.pb.gz", size)),
		)
	}()

	return func() error {
		heap := save(ctx, "/debug/pprof/heap?gc=1", filepath.Join(g.profiles, fmt.Sprintf("heap-%d.pb.gz", size)))
		return errors.Join(<-done, heap)
	}
}

func save(ctx context.Context, path, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+profiledAddress+path, nil)
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

	return os.WriteFile(file, data, 0o600)
}
