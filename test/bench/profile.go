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

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/test/harness"
)

// profiler writes profiles of an operator, and of its API server, into a folder. An empty profiler does nothing.
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

// Start starts CPU profiles of some seconds, cpu-NAME.pb.gz and cpu-NAME-server.pb.gz, and returns a function that
// waits for their end and takes a heap profile of the operator, heap-NAME.pb.gz.
func (p profiler) Start(
	ctx context.Context, server *rest.Config, name string, period time.Duration,
) func() error {
	if p.folder == "" {
		return func() error { return nil }
	}

	var both errgroup.Group

	path := fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(period.Seconds()))
	operator := "http://" + p.address

	both.Go(func() error { return p.save(ctx, http.DefaultClient, operator+path, "cpu-"+name) })
	both.Go(func() error {
		client, err := rest.HTTPClientFor(server)
		if err != nil {
			return err
		}

		return p.save(ctx, client, server.Host+path, "cpu-"+name+"-server")
	})

	return func() error {
		heap := operator + "/debug/pprof/heap?gc=1"

		return errors.Join(both.Wait(), p.save(ctx, http.DefaultClient, heap, "heap-"+name))
	}
}

// WriteFile writes another file next to the profiles.
func (p profiler) WriteFile(name, content string) error {
	if p.folder == "" {
		return nil
	}

	return os.WriteFile(filepath.Join(p.folder, name), []byte(content), 0o600)
}

func (p profiler) save(ctx context.Context, client *http.Client, url, name string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}

	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()

	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer to %s is %s", url, answer.Status)
	}

	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}

	return p.WriteFile(name+".pb.gz", string(data))
}
