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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	defaultTimeout = 10 * time.Minute
	// patience is how long an operator that has not seen a change yet is no news.
	patience = 2 * time.Second
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

// WaitAll waits until all providers meet a condition, if --wait is set, and prints their states. All are waited for at
// the same time, also if one of them fails.
func (c *Cluster) WaitAll(
	ctx context.Context, o *Options, providers []v1alpha2.Provider, flags *WaitFlags, condition Condition,
) error {
	if !flags.Wait {
		return nil
	}

	w := &waiter{Options: o, cluster: c, timeout: flags.Timeout, retries: o.Retries()}
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

			if errs[i] = w.wait(ctx, p, met); errs[i] == nil {
				w.print(p, state)
			}
		})
	}

	group.Wait()

	return errors.Join(errs...)
}

// waiter waits for providers.
type waiter struct {
	*Options

	cluster *Cluster
	timeout time.Duration
	retries func(error) bool

	mu sync.Mutex // for the output
}

func (w *waiter) print(p v1alpha2.Provider, state string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.Printf("%s: %s", v1alpha2.FullName(p), state)
}

// wait waits until the condition is met, and prints each new state.
func (w *waiter) wait(ctx context.Context, p v1alpha2.Provider, condition Condition) error {
	started := time.Now()
	printed := ""

	err := Poll(ctx, w.timeout, w.retries, func(ctx context.Context) (string, error) {
		current, err := w.cluster.read(ctx, p)
		if err != nil {
			return "", err
		}

		if done, err := condition(current); done || err != nil {
			return "", err
		}

		state := Readiness(p)
		if state != printed && (isObserved(p) || time.Since(started) > patience) {
			w.print(p, state)
			printed = state
		}

		return state, nil
	})
	if errors.As(err, new(*timeoutError)) {
		return fmt.Errorf("%s: %w; the operator continues, follow it with `capstan status %s --watch`",
			v1alpha2.FullName(p), err, v1alpha2.Label(p))
	}

	return err
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

// Ready is met when the operator has reconciled the resource's current generation, as the last request asks for, and
// the provider is ready. A provider that is stalled ends waiting with an error.
func Ready(p v1alpha2.Provider) (bool, error) {
	observed, err := Observed(p)

	switch {
	case err != nil || !observed || !isHandled(p):
		return false, err
	case v1alpha2.IsReady(p):
		return true, nil
	case meta.IsStatusConditionTrue(p.GetConditions(), v1alpha2.StalledCondition):
		return false, fmt.Errorf("%s is stalled: %s", v1alpha2.FullName(p), Readiness(p))
	}

	return false, nil
}

// Observed is met when the operator has reconciled the resource's current generation.
func Observed(p v1alpha2.Provider) (bool, error) {
	if p == nil {
		return false, errors.New("the provider was deleted in the meantime")
	}

	return isObserved(p), nil
}

func isObserved(p v1alpha2.Provider) bool {
	return p.GetStatus().ObservedGeneration == p.GetGeneration()
}

// isHandled reports whether the operator has acted on the last request for a reconcile, which it does not while the
// provider is suspended.
func isHandled(p v1alpha2.Provider) bool {
	request := p.GetAnnotations()[v1alpha2.ReconcileRequestAnnotation]

	return p.GetSpec().Suspend || request == p.GetStatus().LastHandledReconcileAt
}

// Gone is met when the resource does not exist any more.
func Gone(p v1alpha2.Provider) (bool, error) { return p == nil, nil }

// Readiness returns the state of a resource in one line.
func Readiness(p v1alpha2.Provider) string {
	ready := meta.FindStatusCondition(p.GetConditions(), v1alpha2.ReadyCondition)
	deleted := !p.GetDeletionTimestamp().IsZero()

	switch {
	case deleted && (ready == nil || !isObserved(p)):
		return "waiting for the operator to remove it" // the condition is older than the deletion
	case ready == nil || !isObserved(p):
		return "not reconciled by the operator yet"
	case v1alpha2.IsReady(p):
		return ready.Message
	default:
		return fmt.Sprintf("%s: %s", ready.Reason, ready.Message)
	}
}
