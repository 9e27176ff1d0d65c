package conformance

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/harness"
)

// Environment is a control plane with the operator and core. It can check several providers, also at the same
// time.
type Environment struct {
	bed      *bed.Bed
	client   client.Client
	operator *harness.Operator
	// others are the components of other providers than core whose CRDs have been created.
	others []*bundle.Components
}

// Start starts an environment. The folders are releases of other providers, which are not checked: core is installed
// instead of a sample with the kinds Cluster and Machine, and of others the CRDs are created. The current folder must
// be in a checkout of Capstan, in which the programs of the control plane are downloaded or compiled the first time.
// The caller must call Stop.
func Start(ctx context.Context, others ...string) (*Environment, error) {
	root, err := checkout(ctx)
	if err != nil {
		return nil, err
	}

	programs, err := tools.Find()
	if err != nil {
		return nil, err
	}

	b, err := bed.Start(ctx, bed.Options{Programs: programs.OfControlPlane().WithReleases()})
	if err != nil {
		return nil, err
	}

	e := &Environment{bed: b}
	if err := e.start(ctx, root, others); err != nil {
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

// start starts the operator and prepares other providers.
func (e *Environment) start(ctx context.Context, root string, others []string) error {
	config := e.bed.Config()
	config.WarningHandler = rest.NoWarnings{} // about fields of a Cluster that the sample of core does not have

	var err error
	if e.client, err = harness.NewClient(config); err != nil {
		return err
	}

	if err := harness.InstallCRDs(ctx, e.client); err != nil {
		return err
	}

	program, err := harness.Program(ctx, root, e.bed.Dir(), harness.OperatorProgram)
	if err != nil {
		return err
	}

	e.operator, err = harness.StartOperator(e.bed, program, filepath.Join(e.bed.Dir(), "operator.log"))
	if err != nil {
		return err
	}

	return e.prepareOthers(ctx, root, others)
}

// Stop ends the environment.
func (e *Environment) Stop() error {
	var err error
	if e.operator != nil {
		err = e.operator.Stop()
	}

	return errors.Join(err, e.bed.Stop())
}
