package bed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/capstan-project/capstan/test/bed/tools"
)

// registryConfig has placeholders for the storage folder, the address and more settings. Deletion is off, as by
// default.
const registryConfig = `version: 0.1
log: {level: info, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: %q}
http:
  addr: %q
%s`

// registryAddress matches the log line with the port that a registry has chosen.
var registryAddress = regexp.MustCompile(`listening on ([\d.]+:\d+)`)

// StartRegistry runs an empty OCI registry over plain HTTP and without authentication until Stop,
// and returns its host:port. A bed can have several registries.
func (b *Bed) StartRegistry(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp(b.Dir(), "registry-")
	if err != nil {
		return "", fmt.Errorf("start a registry: %w", err)
	}

	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(
		config,
		fmt.Appendf(nil, registryConfig, filepath.Join(dir, "data"), "127.0.0.1:0", ""),
		0o600,
	); err != nil {
		return "", fmt.Errorf("start a registry: %w", err)
	}

	registry, err := b.runAs(filepath.Base(dir), tools.Registry, "serve", config)
	if err != nil {
		return "", err
	}

	var address string

	err = b.poll(ctx, "the registry listens", func(context.Context) error {
		address, err = loggedAddress(registry.log)
		return err
	})

	return address, err
}

// loggedAddress returns the address that a registry has logged.
func loggedAddress(path string) (string, error) {
	log, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}

	match := registryAddress.FindSubmatch(log)
	if match == nil {
		return "", errors.New("its log names no address yet")
	}

	return string(match[1]), nil
}
