package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bench/measure"
)

// install installs small providers: core, and infrastructure providers in twenty namespaces.
func (m *measurement) install(ctx context.Context, n int) error {
	for _, release := range measure.Small(n) {
		p, err := release.Install(ctx, m.client)
		if err != nil {
			return err
		}

		m.changed = append(m.changed, p)
	}

	return measure.AllReady(ctx, m.client, n)
}

// change changes an annotation of one provider each second, as long as the measurement takes.
func (m *measurement) change(ctx context.Context) error {
	for i := range int(m.watch / time.Second) {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/changed":"%d"}}}`, time.Now().UnixNano())

		if err := m.client.Patch(ctx, m.changed[i%len(m.changed)], client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}

		measure.Pause(ctx, time.Second)
	}

	return ctx.Err()
}

// wait waits as long as a measurement takes.
func (m *measurement) wait(ctx context.Context) error {
	measure.Pause(ctx, m.watch)
	return ctx.Err()
}
