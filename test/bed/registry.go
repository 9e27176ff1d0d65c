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

// registryConfig is filled with the folder of what is stored, the address, and more settings.
const registryConfig = `version: 0.1
log: {level: info, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: %q}
  delete: {enabled: true}
http:
  addr: %q
%s`

// registryAddress is how a registry tells which port it got.
var registryAddress = regexp.MustCompile(`listening on ([\d.]+:\d+)`)

// StartRegistry runs an empty OCI registry, by plain HTTP and without authentication, until Stop.
// It returns the registry's host:port. A bed can have several.
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

// loggedAddress finds in a registry's log where it listens.
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
