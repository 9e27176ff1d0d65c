package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// operatorInterval is how often it is asked whether an operator runs.
	operatorInterval = 5 * time.Second
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
	// Installed says how a provider is that runs, but not by Capstan yet; empty for one that does not run.
	Installed string
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

	w := &waiter{progress: NewProgress(o.Out), cluster: c, flags: flags, started: time.Now()}
	for _, p := range providers {
		w.pending = append(w.pending, &waited{provider: p, name: v1alpha2.FullName(p)})
	}

	err := Poll(ctx, flags.Timeout, w.progress.Retries(o), func(ctx context.Context) (string, error) {
		if err := w.read(ctx); err != nil {
			return "", err
		}

		w.askOperator(ctx)

		return w.look(condition), nil
	})

	w.progress.Show()

	late := new(timeoutError)
	if !errors.As(err, &late) {
		return errors.Join(append(w.failures, err)...)
	}

	for _, one := range w.pending {
		why := &timeoutError{late.cause, cmp.Or(w.unread, one.verdict.String(), late.pending)}

		advice := w.stopped
		if advice == "" {
			advice = fmt.Sprintf("the operator continues, follow it with `capstan status %s --watch`",
				v1alpha2.Label(one.provider))
		}

		w.failures = append(w.failures, fmt.Errorf("%s: %w; %s", one.name, why, advice))
	}

	return errors.Join(w.failures...)
}

// waiter waits for providers.
type waiter struct {
	progress *Progress
	cluster  *Cluster
	flags    *WaitFlags
	started  time.Time

	// pending are those that are still waited for, and failures why others no longer are.
	pending  []*waited
	failures []error
	// unread is why the last look failed; empty if it did not.
	unread string
	// stopped says that no operator runs; empty if one does, as far as is known. It was asked at a time.
	stopped string
	asked   time.Time
}

// waited is a provider that is waited for.
type waited struct {
	provider v1alpha2.Provider
	// name is the full name, and isGone is set if the resource does not exist.
	name    string
	isGone  bool
	verdict view.Verdict
	// last is the verdict that was printed last, and printed when that was, without a terminal.
	last    view.Verdict
	printed time.Time
}

// askOperator finds out from time to time whether an operator runs, and prints once that none does.
func (w *waiter) askOperator(ctx context.Context) {
	if time.Since(cmp.Or(w.asked, w.started)) < operatorInterval {
		return
	}

	before := w.stopped
	w.stopped, w.asked = w.cluster.StoppedOperator(ctx), time.Now()

	if before == "" && w.stopped != "" {
		w.progress.Printf("%s", w.stopped)
	}
}

// look checks the providers after they were read, shows what has become of them, how long that has taken and how long
// it may. It returns what is pending; empty for nothing.
func (w *waiter) look(condition Condition) string {
	var (
		pending []*waited
		lines   []string
	)

	elapsed := fmt.Sprintf("%s of %s", duration.HumanDuration(time.Since(w.started)),
		duration.HumanDuration(w.flags.Timeout))

	for _, one := range w.pending {
		done, err := one.check(condition)
		if w.flags.Installed != "" {
			one.verdict.Text = strings.Replace(one.verdict.Text, "not installed yet", w.flags.Installed, 1)
		}

		switch {
		case err != nil:
			w.failures = append(w.failures, err)
		case done:
			w.progress.Printf("%s: %s (%s)", one.name, one.verdict, time.Since(w.started).Round(100*time.Millisecond))
		default:
			pending = append(pending, one)
			lines = append(lines, v1alpha2.Label(one.provider)+": "+one.verdict.String())
			w.print(one, elapsed)
		}
	}

	w.pending = pending

	if len(pending) == 0 {
		return ""
	}

	w.progress.Show(append(lines, "waiting for "+elapsed)...)

	return cmp.Or(pending[0].verdict.String(), pending[0].name)
}

// check reports whether waiting for the provider is over.
func (o *waited) check(condition Condition) (bool, error) {
	current := o.provider
	if o.isGone {
		current = nil
	}

	done, err := condition(current)
	if err != nil && o.isGone {
		err = fmt.Errorf("%s: %w", o.name, err)
	}

	o.verdict = view.VerdictOf(o.provider)

	switch {
	case done && o.isGone:
		o.verdict = view.Verdict{Text: "removed"}
	case !done && o.verdict.State == view.Ready && !isHandled(o.provider): // it is older than the request
		o.verdict = view.Verdict{State: view.Waiting, Text: "waiting for the operator"}
	}

	return done, err
}

// print prints what is news of a provider. On a terminal, all is shown anyway.
func (w *waiter) print(one *waited, elapsed string) {
	if w.progress.isTerminal() || !w.isDue(one) {
		return
	}

	news := one.verdict
	if news.Cause == one.last.Cause { // it is on the screen
		news.Cause = ""
	}

	w.progress.Printf("%s: %s (%s)", one.name, news, elapsed)

	one.last, one.printed = one.verdict, time.Now()
}

// read reads the providers: of a kind and namespace by one request.
func (w *waiter) read(ctx context.Context) error {
	type group struct {
		kind      v1alpha2.ProviderType
		namespace string
	}

	groups := map[group][]*waited{}

	for _, one := range w.pending {
		of := group{one.provider.ProviderType(), one.provider.GetNamespace()}
		groups[of] = append(groups[of], one)
	}

	for of, members := range groups {
		list := of.kind.NewList()
		if err := w.cluster.Client.List(ctx, list, client.InNamespace(of.namespace)); err != nil {
			err = fmt.Errorf("read %s: %w", members[0].name, err)
			if ctx.Err() == nil { // an interrupted request says nothing
				w.unread = err.Error()
			}

			return err
		}

		for _, one := range members {
			one.find(list.GetItems())
		}
	}

	w.unread = ""

	return nil
}

// find takes over the provider as it was read, if it still exists.
func (o *waited) find(read []v1alpha2.Provider) {
	i := slices.IndexFunc(read, func(p v1alpha2.Provider) bool { return p.GetName() == o.provider.GetName() })
	if o.isGone = i < 0; !o.isGone {
		o.provider = read[i]
	}
}

// isDue reports whether a verdict has to be printed: when it changes, and from time to time.
func (w *waiter) isDue(one *waited) bool {
	waited, quiet := time.Since(w.started), time.Since(one.printed)

	switch {
	case waited > signOfLife && quiet > signOfLife:
		return true
	case waited <= patience && (!isObserved(one.provider) || !isHandled(one.provider)):
		return false
	}

	return one.verdict.Text != one.last.Text || one.verdict.Cause != one.last.Cause && quiet > causeInterval
}

// Ready is met when the operator has reconciled the resource's current generation, as the last request asks for, and
// the provider is ready. A provider that is stalled ends waiting with an error, once what it was rolled back to runs.
func Ready(p v1alpha2.Provider) (bool, error) {
	observed, err := Observed(p)

	switch {
	case err != nil || !observed || !isHandled(p):
		return false, err
	case v1alpha2.IsReady(p):
		return true, nil
	case meta.IsStatusConditionTrue(p.GetConditions(), v1alpha2.StalledCondition) && !isReturning(p):
		return false, fmt.Errorf("%s: %s", v1alpha2.FullName(p), view.VerdictOf(p))
	}

	return false, nil
}

// isReturning reports whether a rollback has not become healthy yet. One that does not in time has failed.
func isReturning(p v1alpha2.Provider) bool {
	history := p.GetStatus().History

	return len(history) > 0 && history[0].RollbackTo != 0 && history[0].Status == v1alpha2.RevisionDeployed &&
		!history[0].Healthy
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
