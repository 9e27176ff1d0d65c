package conformance

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// Environment is a control plane with the operator and core. It can check several providers, also at the same
// time.
type Environment struct {
	bed      *bed.Bed
	client   client.Client
	operator *harness.Operator
}

// Start starts an environment. The current folder must be in a checkout of Capstan. The caller must call Stop.
func Start(ctx context.Context) (*Environment, error) {
	root, err := checkout(ctx)
	if err != nil {
		return nil, err
	}

	b, err := bed.Start(ctx, bed.Options{})
	if err != nil {
		return nil, err
	}

	e := &Environment{bed: b}
	if err := e.start(ctx, root); err != nil {
		return nil, errors.Join(err, e.Stop())
	}

	return e, nil
}

// checkout returns the root of the checkout that contains the current folder.
func checkout(ctx context.Context) (string, error) {
	file, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}

	return filepath.Dir(strings.TrimSpace(string(file))), nil
}

// start starts the operator and installs a sample of core, which all providers need.
func (e *Environment) start(ctx context.Context, root string) error {
	var err error
	if e.client, err = harness.NewClient(e.bed.Config()); err != nil {
		return err
	}

	if err := harness.InstallCRDs(ctx, e.client, root); err != nil {
		return err
	}

	program, err := harness.BuildOperator(ctx, root, e.bed.Dir())
	if err != nil {
		return err
	}

	e.operator, err = harness.StartOperator(e.bed, program, filepath.Join(e.bed.Dir(), "operator.log"))
	if err != nil {
		return err
	}

	core, err := harness.Load(ctx, filepath.Join(root, testproviders.Samples), harness.Wanted{Label: "cluster-api"})
	if err != nil {
		return err
	}

	p, err := core.Install(ctx, e.client)
	if err != nil {
		return err
	}

	problem, err := (&check{Environment: e, timeout: DefaultTimeout}).waitReady(ctx, p, core.Bundle.Version)
	if err == nil && problem != "" {
		err = fmt.Errorf("install core: %s", problem)
	}

	return err
}

// Stop ends the environment.
func (e *Environment) Stop() error {
	var err error
	if e.operator != nil {
		err = e.operator.Stop()
	}

	return errors.Join(err, e.bed.Stop())
}
