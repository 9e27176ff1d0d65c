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
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

const (
	defaultTimeout = 10 * time.Minute
	// patience is how long an operator that has not seen a change yet is no news.
	patience = 2 * time.Second
	// causeInterval is how often another cause is printed at most: which objects are not healthy yet changes all the time.
	causeInterval = 10 * time.Second
	// signOfLife is how long nothing is printed at most.
	signOfLife = 30 * time.Second
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

// TryAgain returns the metadata that makes the operator do what the resource asks for again.
func TryAgain() map[string]any {
	return map[string]any{"annotations": map[string]any{
		v1alpha2.ReconcileRequestAnnotation: time.Now().Format(time.RFC3339Nano),
	}}
}

// Condition reports whether waiting for a provider is over. It gets nil once the resource is gone.
// An error ends waiting, too.
type Condition func(p v1alpha2.Provider) (bool, error)

// WaitAll waits until all providers meet a condition, if --wait is set, and prints what becomes of them. All are waited
// for at the same time, also if one of them fails.
func (c *Cluster) WaitAll(
	ctx context.Context, o *Options, providers []v1alpha2.Provider, flags *WaitFlags, condition Condition,
) error {
	if !flags.Wait {
		return nil
	}

	w := &waiter{progress: NewProgress(o.Out), cluster: c, timeout: flags.Timeout, started: time.Now()}
	w.retries = w.progress.Retries(o)
	errs := make([]error, len(providers))

	var group sync.WaitGroup
	for i, p := range providers {
		group.Go(func() { errs[i] = w.wait(ctx, p, condition) })
	}

	group.Wait()

	return errors.Join(errs...)
}

// waiter waits for providers.
type waiter struct {
	progress *Progress
	cluster  *Cluster
	timeout  time.Duration
	started  time.Time
	retries  func(error) bool
}

// wait waits until the condition is met, and shows the verdict, how long it has waited and how long it will.
func (w *waiter) wait(ctx context.Context, p v1alpha2.Provider, condition Condition) error {
	var (
		current v1alpha2.Provider
		last    printed
	)

	label, name := v1alpha2.Label(p), v1alpha2.FullName(p)
	defer w.progress.Drop(name)

	err := Poll(ctx, w.timeout, w.retries, func(ctx context.Context) (_ string, err error) {
		if current, err = w.cluster.read(ctx, p); err != nil {
			return "", err
		}

		if done, err := condition(current); done || err != nil {
			return "", err
		}

		verdict := view.VerdictOf(p)
		elapsed := fmt.Sprintf("%s of %s", duration.HumanDuration(time.Since(w.started)), duration.HumanDuration(w.timeout))

		if !w.progress.Show(name, label+"  "+elapsed+"  "+verdict.String()) && w.isDue(p, verdict, last) {
			news := verdict
			if verdict.Cause == last.verdict.Cause { // it is on the screen
				news.Cause = ""
			}

			w.progress.Printf("%s: %s (%s)", name, news, elapsed)

			last = printed{verdict, time.Now()}
		}

		return verdict.String(), nil
	})
	if errors.As(err, new(*timeoutError)) {
		return fmt.Errorf("%s: %w; the operator continues, follow it with `capstan status %s --watch`", name, err, label)
	}

	if err != nil {
		return err
	}

	verdict := "removed"
	if current != nil {
		verdict = view.VerdictOf(current).String()
	}

	w.progress.Printf("%s: %s (%s)", name, verdict, time.Since(w.started).Round(100*time.Millisecond))

	return nil
}

// printed is what was printed last of a provider, without a terminal.
type printed struct {
	verdict view.Verdict
	at      time.Time
}

// isDue reports whether a verdict has to be printed: when it changes, and from time to time.
func (w *waiter) isDue(p v1alpha2.Provider, verdict view.Verdict, last printed) bool {
	waited, quiet := time.Since(w.started), time.Since(last.at)

	switch {
	case waited > signOfLife && quiet > signOfLife:
		return true
	case waited <= patience && (!isObserved(p) || !isHandled(p)):
		return false
	}

	return verdict.Text != last.verdict.Text || verdict.Cause != last.verdict.Cause && quiet > causeInterval
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
		return false, fmt.Errorf("%s: %s", v1alpha2.FullName(p), view.VerdictOf(p))
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
