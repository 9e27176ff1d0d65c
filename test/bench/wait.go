package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// allReady polls until every resource is Ready.
func allReady(ctx context.Context, c client.Client, releases []*harness.Release) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()

	for _, r := range releases {
		p := r.Resource()
		for !conditions.IsReady(p) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
				return fmt.Errorf(
					"%s is not ready (%s): %w",
					v1alpha2.Label(p),
					conditions.GetMessage(p, v1alpha2.ReadyCondition),
					err,
				)
			}

			pause(ctx, 20*time.Millisecond)
		}
	}

	return nil
}

// settled waits until the operator has started and sends no more requests.
func settled(ctx context.Context, b *bed.Bed) error {
	for before := -1; ; {
		now, err := requests(b, all)
		if err != nil {
			return err
		}

		if now == before && now > 0 {
			return nil
		}

		before = now

		pause(ctx, time.Second)
	}
}

// idleWrites counts the operator's writes during a period in which nothing happens.
func idleWrites(ctx context.Context, b *bed.Bed, idle time.Duration) (int, error) {
	if idle == 0 {
		return 0, nil
	}

	if err := settled(ctx, b); err != nil {
		return 0, err
	}

	writes := func(r bed.Request) bool { return r.Write() }

	before, err := requests(b, writes)
	if err != nil {
		return 0, err
	}

	pause(ctx, idle)

	after, err := requests(b, writes)

	return after - before, err
}

// requests returns the number of the operator's requests so far.
func requests(b *bed.Bed, keep func(bed.Request) bool) (int, error) {
	list, err := b.Requests(func(r bed.Request) bool { return r.User == harness.OperatorUser && keep(r) })
	return len(list), err
}

func all(bed.Request) bool { return true }

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
