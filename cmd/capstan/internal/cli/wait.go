package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	// pollInterval is short enough that commands appear to react at once, and costs little.
	pollInterval   = 300 * time.Millisecond
	defaultTimeout = 10 * time.Minute
)

// FieldOwner is the field manager of what commands create and change.
const FieldOwner = client.FieldOwner("capstan-cli")

// WaitFlags are the flags of commands that change a provider's resource and wait until the operator
// has acted on it.
type WaitFlags struct {
	Wait    bool
	Timeout time.Duration
}

// AddWaitFlags adds --wait and --timeout to a command; until completes "wait until".
func AddWaitFlags(flags *pflag.FlagSet, until string) *WaitFlags {
	f := &WaitFlags{}
	flags.BoolVar(&f.Wait, "wait", true, "Wait until "+until+".")
	flags.DurationVar(&f.Timeout, "timeout", defaultTimeout, "How long to wait for each provider.")

	return f
}

// Patch applies a merge patch to a provider's resource and updates p.
func (c *Cluster) Patch(ctx context.Context, p v1alpha2.Provider, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}

	err = c.Client.Patch(ctx, p, client.RawPatch(types.MergePatchType, patch), FieldOwner)

	status := new(apierrors.StatusError)
	if apierrors.IsInvalid(err) && errors.As(err, &status) {
		return fmt.Errorf("the API server rejected the change of %s: %s", v1alpha2.FullName(p), status.ErrStatus.Message)
	}

	if err != nil {
		return fmt.Errorf("change %s: %w", v1alpha2.FullName(p), err)
	}

	return nil
}

// Condition reports whether waiting for a provider is over. It gets nil once the resource is gone.
// An error ends waiting, too.
type Condition func(p v1alpha2.Provider) (bool, error)

// Wait polls a provider until the condition is met, and passes each new state to printLine.
func (c *Cluster) Wait(
	ctx context.Context,
	p v1alpha2.Provider,
	timeout time.Duration,
	condition Condition,
	printLine func(string),
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
	defer cancel()

	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()

	printed := ""

	for {
		current, err := c.read(ctx, p)
		if err != nil && ctx.Err() == nil {
			return err
		}

		if err == nil {
			done, err := condition(current)
			if done || err != nil {
				return err
			}
		}

		if state := Readiness(p); state != printed {
			printLine(fmt.Sprintf("%s: %s", v1alpha2.FullName(p), state))
			printed = state
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"%s: %w: %s; the operator continues, follow it with `capstan status %s --watch`",
				v1alpha2.FullName(p),
				context.Cause(ctx),
				printed,
				v1alpha2.Label(p),
			)
		case <-ticker.C:
		}
	}
}

// WaitAll waits until all providers meet a condition, if --wait is set, and passes their states to printLine. All are
// waited for at the same time, also if one of them fails.
func (c *Cluster) WaitAll(
	ctx context.Context,
	providers []v1alpha2.Provider,
	flags *WaitFlags,
	condition Condition,
	printLine func(string),
) error {
	if !flags.Wait {
		return nil
	}

	var mu sync.Mutex

	printLocked := func(line string) {
		mu.Lock()
		defer mu.Unlock()

		printLine(line)
	}

	errs := make([]error, len(providers))

	var group sync.WaitGroup
	for i, p := range providers {
		group.Go(func() {
			var state string

			met := func(current v1alpha2.Provider) (bool, error) {
				if state = "removed"; current != nil {
					state = Readiness(current)
				}

				return condition(current)
			}

			if errs[i] = c.Wait(ctx, p, flags.Timeout, met, printLocked); errs[i] == nil {
				printLocked(fmt.Sprintf("%s: %s", v1alpha2.FullName(p), state))
			}
		})
	}

	group.Wait()

	return errors.Join(errs...)
}

// read updates p from the cluster and returns it; nil if the resource does not exist.
func (c *Cluster) read(ctx context.Context, p v1alpha2.Provider) (v1alpha2.Provider, error) {
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(p), p)

	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", v1alpha2.FullName(p), err)
	}

	return p, nil
}

// Ready is met when the operator has reconciled the resource's current generation and the provider
// is ready. A provider that is stalled ends waiting with an error.
func Ready(p v1alpha2.Provider) (bool, error) {
	observed, err := Observed(p)

	switch {
	case err != nil || !observed:
		return false, err
	case conditions.IsReady(p):
		return true, nil
	case conditions.IsStalled(p):
		return false, fmt.Errorf("%s is stalled: %s", v1alpha2.FullName(p), Readiness(p))
	}

	return false, nil
}

// Observed is met when the operator has reconciled the resource's current generation.
func Observed(p v1alpha2.Provider) (bool, error) {
	if p == nil {
		return false, errors.New("the provider was deleted in the meantime")
	}

	return p.GetStatus().ObservedGeneration == p.GetGeneration(), nil
}

// Gone is met when the resource does not exist any more.
func Gone(p v1alpha2.Provider) (bool, error) { return p == nil, nil }

// Readiness returns the state of a resource in one line.
func Readiness(p v1alpha2.Provider) string {
	ready := conditions.Get(p, v1alpha2.ReadyCondition)
	outdated := p.GetStatus().ObservedGeneration != p.GetGeneration() && p.GetDeletionTimestamp().IsZero()

	switch {
	case ready == nil || outdated:
		return "not reconciled by the operator yet"
	case conditions.IsReady(p):
		return ready.Message
	default:
		return fmt.Sprintf("%s: %s", ready.Reason, ready.Message)
	}
}
