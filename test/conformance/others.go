package conformance

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/test/testproviders"
)

// prepareOthers installs core, which all providers need, and creates the CRDs of the other releases.
func (e *Environment) prepareOthers(ctx context.Context, root string, folders []string) error {
	core, err := load(ctx, filepath.Join(root, testproviders.Samples, "cluster-api", "v1.0.0"), Identity{}, nil)
	if err != nil {
		return err
	}

	for _, folder := range folders {
		release, err := load(ctx, folder, Identity{}, nil)
		if err != nil {
			return err
		}

		if release.Type == v1alpha2.CoreProviderType {
			core = release
			continue
		}

		if err := e.createCRDs(ctx, release); err != nil {
			return err
		}
	}

	return e.installCore(ctx, core)
}

// createCRDs creates the CRDs of a release.
func (e *Environment) createCRDs(ctx context.Context, release *release) error {
	components, err := bundle.ParseComponents(release.Bundle.Components)
	if err != nil {
		return err
	}

	for _, doc := range components.Documents {
		if !doc.IsCRD() {
			continue
		}

		if err := e.client.Create(ctx, doc.Object); err != nil {
			return fmt.Errorf("create %s of %s: %w", doc.Object.GetName(), release.Bundle.Provider.Label, err)
		}
	}

	e.others = append(e.others, components)

	return nil
}

// installCore installs a release of core, and waits until it is ready.
func (e *Environment) installCore(ctx context.Context, release *release) error {
	var err error
	if release.Bundle.Components, err = withoutWebhooks(release.Bundle.Components); err != nil {
		return err
	}

	p, err := release.Install(ctx, e.client)
	if err != nil {
		return err
	}

	c := &check{Environment: e, timeout: DefaultTimeout}

	problem, err := c.waitReady(ctx, p, release.Bundle.Version)
	if err == nil && problem != "" {
		err = fmt.Errorf("install core: %s", problem)
	}

	return err
}

// withoutWebhooks removes the configurations of admission webhooks from components that no process runs.
func withoutWebhooks(components []byte) ([]byte, error) {
	parsed, err := bundle.ParseComponents(components)
	if err != nil {
		return nil, err
	}

	var kept bytes.Buffer

	for _, doc := range parsed.Documents {
		if !strings.HasSuffix(doc.Object.GetKind(), "WebhookConfiguration") {
			kept.WriteString("---\n" + doc.Source)
		}
	}

	return kept.Bytes(), nil
}
