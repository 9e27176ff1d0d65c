package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/testproviders"
)

// measure does the work for a release once and returns its CPU time.
type measure func(ctx context.Context, r *release) (time.Duration, error)

// newMeasures builds the programs and returns the measures in the order of the table.
func newMeasures(ctx context.Context, dir string) ([]measure, error) {
	set, err := tools.Find()
	if err != nil {
		return nil, err
	}

	if err := set.WithClusterctl().Build(ctx, os.Stderr); err != nil {
		return nil, err
	}

	capstan := filepath.Join(dir, "capstan")

	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", capstan, "./cmd/capstan")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build capstan: %w\n%s", err, out)
	}

	return []measure{
		func(ctx context.Context, r *release) (time.Duration, error) {
			from := filepath.Join(r.folder, r.content.Version)
			return command(ctx, capstan, "chart", "build", from, "--destination", dir+"/")
		},
		library,
		func(ctx context.Context, r *release) (time.Duration, error) {
			return generateProvider(ctx, set.Program(tools.Clusterctl), dir, r)
		},
	}, nil
}

// command runs a program and returns its CPU time.
func command(ctx context.Context, program string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, program, args...)

	// clusterctl would read its own setting of that name from the variable.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, testproviders.Variable+"=")
	})
	cmd.Env = append(cmd.Env, "CLUSTERCTL_DISABLE_VERSIONCHECK=true")

	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%.2000s", filepath.Base(program), err, out)
	}

	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// library builds a chart in this process.
func library(_ context.Context, r *release) (time.Duration, error) {
	before, err := ownTime()
	if err != nil {
		return 0, err
	}

	built, err := chartgen.Build(r.content)
	if err != nil {
		return 0, err
	}

	if _, err := built.Archive(); err != nil {
		return 0, err
	}

	after, err := ownTime()

	return after - before, err
}

// ownTime returns the CPU time of this process.
func ownTime() (time.Duration, error) {
	var usage syscall.Rusage

	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)

	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}

// generateProvider prints the objects of a release with clusterctl.
func generateProvider(ctx context.Context, clusterctl, dir string, r *release) (time.Duration, error) {
	config, err := clusterctlConfig(dir, r)
	if err != nil {
		return 0, err
	}

	provider := r.content.Provider
	// clusterctl names its flags like the prefixes of labels.
	flag := "--" + strings.TrimSuffix(provider.Label, "-"+provider.Name)
	if provider.Type == string(v1alpha2.CoreProviderType) {
		flag = "--core"
	}

	return command(ctx, clusterctl, "generate", "provider", flag, provider.Name+":"+r.content.Version, "--config", config)
}

// clusterctlConfig writes a configuration with the release, and with values for its required variables.
func clusterctlConfig(dir string, r *release) (string, error) {
	built, err := chartgen.Build(r.content)
	if err != nil {
		return "", err
	}

	required, _, err := chartgen.RequiredVariables(built)
	if err != nil {
		return "", err
	}

	components, err := filepath.Glob(filepath.Join(r.folder, r.content.Version, "*-"+bundle.ComponentsFile))
	if err != nil {
		return "", err
	}

	config := map[string]any{"providers": []map[string]string{{
		"name": r.content.Provider.Name,
		"type": r.content.Provider.Type,
		"url":  components[0],
	}}}

	for _, name := range required {
		config[name] = bundle.Placeholder
	}

	data, err := yaml.Marshal(config)
	if err != nil {
		return "", err
	}

	file := filepath.Join(dir, "clusterctl.yaml")

	return file, os.WriteFile(file, data, 0o600)
}
