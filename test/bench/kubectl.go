package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// kubectlUser is the user name of kubectl in the audit log.
const kubectlUser = "kubectl"

// applier is a user of kubectl on a control plane.
type applier struct {
	bed        *bed.Bed
	client     client.Client
	kubeconfig string
	measured   stageFigures
}

// measureKubectl measures `kubectl apply` of the providers' manifests, one file after the other, on a new control
// plane.
func (s *setting) measureKubectl(ctx context.Context) (measured stageFigures, err error) {
	b, err := bed.Start(ctx, bed.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()

	c, err := harness.NewClient(b.Config())
	if err != nil {
		return nil, err
	}

	kubeconfig, err := b.KubeconfigFor(kubectlUser)
	if err != nil {
		return nil, err
	}

	a := &applier{bed: b, client: c, kubeconfig: kubeconfig, measured: stageFigures{}}

	for _, step := range []struct {
		stage    stage
		releases []*harness.Release
		replicas int32
	}{
		{install, s.older, 0},
		{change, s.older[changed:], replicasAfter},
		{upgradeOne, []*harness.Release{s.middle}, 0},
		{rollBack, s.older[upgraded : upgraded+1], 0},
		{upgradeAll, s.newer, 0},
	} {
		if err := a.measure(ctx, step.stage, step.releases, step.replicas); err != nil {
			return nil, fmt.Errorf("%s: %w", step.stage, err)
		}
	}

	return a.measured, nil
}

// measure applies releases and waits until their managers are available.
func (a *applier) measure(ctx context.Context, stage stage, releases []*harness.Release, replicas int32) error {
	var files []string

	for _, r := range releases {
		file, err := a.write(r, replicas)
		if err != nil {
			return err
		}

		files = append(files, file)
	}

	var f figures

	serverCPU, err := serverCPU(ctx, a.bed)
	if err != nil {
		return err
	}

	begin := time.Now()

	for _, file := range files {
		if err := a.apply(ctx, file, &f); err != nil {
			return err
		}
	}

	f.applied = time.Since(begin)

	if err := awaitManagers(ctx, a.client, releases, replicas); err != nil {
		return err
	}

	f.took = time.Since(begin)

	if f.serverCPU, err = serverCPU(); err != nil {
		return err
	}

	requests, err := requestsOf(a.bed, kubectlUser, begin)
	f.requests, f.writes = len(requests), writesOf(requests)
	a.measured[stage] = f

	return err
}

// write writes the manifest of a release, with another number of replicas unless that is 0.
func (a *applier) write(r *harness.Release, replicas int32) (string, error) {
	text, err := expand(r)
	if err != nil {
		return "", err
	}

	if replicas > 0 {
		changed := strings.ReplaceAll(text, "  replicas: 1\n", fmt.Sprintf("  replicas: %d\n", replicas))
		if changed == text {
			return "", fmt.Errorf("%s has no Deployment with one replica", r.Bundle.Provider.Label)
		}

		text = changed
	}

	file := filepath.Join(a.bed.Dir(), r.Bundle.Provider.Label+".yaml")

	return file, os.WriteFile(file, []byte(text), 0o600)
}

// apply runs kubectl and adds what it used.
func (a *applier) apply(ctx context.Context, file string, f *figures) error {
	cmd := a.bed.Command(ctx, "kubectl", "apply", "--server-side", "--force-conflicts", "-f", file)
	cmd.Env = append(cmd.Env, "KUBECONFIG="+a.kubeconfig)

	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply of %s: %w\n%s", file, err, out)
	}

	f.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()

	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		f.peak = max(f.peak, usage.Maxrss<<10) // in KiB on Linux
	}

	return nil
}
