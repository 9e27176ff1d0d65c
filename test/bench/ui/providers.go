package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// install installs small providers: core, and infrastructure providers in twenty namespaces.
func (m *measurement) install(ctx context.Context, n int) error {
	const namespaces = 20

	for i := range n {
		providerType, name, object := v1alpha2.InfrastructureProviderType, fmt.Sprintf("s-%03d", i), fmt.Sprintf("s%03d", i)
		if i == 0 {
			providerType, name = v1alpha2.CoreProviderType, v1alpha2.CoreProviderName
		}

		key := types.NamespacedName{Namespace: fmt.Sprintf("scale-%02d", i%namespaces), Name: name}

		p, err := harness.Small(providerType, key, object, "v1.0.0").Install(ctx, m.client)
		if err != nil {
			return err
		}

		m.changed = append(m.changed, p)
	}

	return m.allReady(ctx, n)
}

// allReady waits until that many providers are Ready.
func (m *measurement) allReady(ctx context.Context, wanted int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()

	for ready := 0; ready < wanted; pause(ctx, time.Second) {
		ready = 0

		for _, t := range []v1alpha2.ProviderType{v1alpha2.CoreProviderType, v1alpha2.InfrastructureProviderType} {
			list := t.NewList()
			if err := m.client.List(ctx, list); err != nil {
				return fmt.Errorf("%d of %d are ready: %w", ready, wanted, err)
			}

			for _, p := range list.GetItems() {
				if conditions.IsReady(p) {
					ready++
				}
			}
		}
	}

	return nil
}

// change changes an annotation of one provider each second, as long as the measurement takes.
func (m *measurement) change(ctx context.Context) error {
	for i := range int(m.watch / time.Second) {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/changed":"%d"}}}`, time.Now().UnixNano())

		if err := m.client.Patch(ctx, m.changed[i%len(m.changed)], client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}

		pause(ctx, time.Second)
	}

	return ctx.Err()
}

// wait waits as long as a measurement takes.
func (m *measurement) wait(ctx context.Context) error {
	pause(ctx, m.watch)
	return ctx.Err()
}

// quiet waits until the operator has used almost no processor time for five seconds.
func (m *measurement) quiet(ctx context.Context) error {
	const seconds, most = 5, 100 * time.Millisecond

	for ctx.Err() == nil {
		before := m.operator.CPU()

		pause(ctx, seconds*time.Second)

		if m.operator.CPU()-before < most {
			return nil
		}
	}

	return ctx.Err()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
