package controllers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/clock"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/dryrun"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/reconcile"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
)

// DryRun is the operator without its watches, and without changing anything: it runs the reconciles of providers, and
// tells what they decide.
type DryRun struct {
	// Client reads and writes as if what would have been written had been.
	Client client.Client

	transport   *dryrun.Transport
	local       *clusters.Cluster
	reconcilers map[v1alpha2.ProviderType]*reconcile.Reconciler

	mu        sync.Mutex
	events    []Event
	decisions []decide.Decision
	denied    []int // how many requests were denied before each decision
}

// Pass is what one reconcile has decided.
type Pass struct {
	// Lists of rows, in their order.
	Lists []decide.List `json:"lists,omitempty"`
	// Unknown is what could not be found out, by the row that has asked, because the user must not read it.
	Unknown []Unknown `json:"unknown,omitempty"`
	// Writes are what would have been changed.
	Writes []dryrun.Write `json:"writes,omitempty"`
	// Events would have been emitted.
	Events []Event `json:"events,omitempty"`
	// Status is what would have been reported.
	Status v1alpha2.ProviderStatus `json:"-"`
	// After is when the operator would look again; zero if an event tells.
	After time.Duration `json:"-"`
	// Gone is set if the resource would no longer exist.
	Gone bool `json:"gone,omitempty"`
}

// Unknown is what could not be found out.
type Unknown struct {
	// Row that has asked; empty if that was before the first one.
	Row string `json:"row,omitempty"`
	// Denied is what the user may not do.
	Denied []string `json:"denied"`
}

// String says what is not known, and why.
func (u Unknown) String() string {
	text := "Not known"
	if u.Row != "" {
		text = fmt.Sprintf("The answer to the row %q is not known", u.Row)
	}

	return text + ", because you may not " + object.List(u.Denied, 3) + "; the operator may, so it can decide otherwise."
}

// Event is an event that would have been emitted.
type Event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// NewDryRun returns what runs reconciles with the permissions of a connection. It asks the sources of providers until
// ctx ends.
func NewDryRun(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, options Options) (*DryRun, error) {
	d := &DryRun{transport: dryrun.New(), reconcilers: map[v1alpha2.ProviderType]*reconcile.Reconciler{}}
	config = d.transport.Wrap(config)
	config.QPS = -1
	options.Clock = &clock.Clock{}
	config.Wrap(options.Clock.Wrap)

	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}

	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}

	d.Client, err = client.New(config, client.Options{Scheme: scheme, Mapper: mapper, HTTPClient: httpClient})
	if err != nil {
		return nil, err
	}

	wake := func(string, string, time.Duration) {}
	connection := clusters.Connection{
		Config: config, HTTPClient: httpClient, Mapper: mapper, Scheme: scheme, Unwatched: true,
		Namespaces: options.Scope.CacheNamespaces(),
	}

	d.local, err = clusters.NewCluster(connection, options.Holder, wake)
	if err != nil {
		return nil, err
	}

	d.transport.OnWrite = d.local.OwnTarget().Expire
	with := connections{
		cached: d.Client, uncached: d.Client, charts: &store.Cluster{Client: d.Client}, events: (*dryEvents)(d), wake: wake,
		remote: func(next http.RoundTripper) http.RoundTripper { return d.transport.RoundTripper(next) },
	}

	dependencies, err := with.dependencies(d.local, options)
	if err != nil {
		return nil, err
	}

	dependencies.Decided = d.decided

	for _, t := range v1alpha2.ProviderTypes() {
		d.reconcilers[t] = &reconcile.Reconciler{Dependencies: dependencies, Type: t}
	}

	go func() { _ = dependencies.Upgrades.Start(ctx) }()

	return d, nil
}

// dryEvents records events with a pass.
type dryEvents DryRun

// Eventf records an event.
//
//nolint:revive // the number of arguments is that of the interface
func (d *dryEvents) Eventf(_, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.events = append(d.events, Event{Type: eventType, Reason: reason, Message: fmt.Sprintf(note, args...)})
}

func (d *DryRun) decided(_ v1alpha2.Provider, decision decide.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.decisions = append(d.decisions, decision)
	d.denied = append(d.denied, len(d.transport.Denied()))
}

// maxTooEarly bounds how long a reconcile is repeated that was too early.
const maxTooEarly = 5 * time.Second

// Reconcile runs one reconcile of a provider. Its error is one of reading the resource.
func (d *DryRun) Reconcile(ctx context.Context, provider v1alpha2.Provider) (Pass, error) {
	ctx = ctrl.LoggerInto(ctx, logr.Discard())
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(provider)}
	writes, denied := len(d.transport.Writes()), len(d.transport.Denied())

	for begun := time.Now(); ; {
		d.mu.Lock()
		d.events, d.decisions, d.denied = nil, nil, nil
		d.mu.Unlock()
		d.local.OwnTarget().Expire()

		// An error is what the status says as well.
		result, _ := d.reconcilers[provider.ProviderType()].Reconcile(ctx, request)

		if d.tooEarly() && time.Since(begun) < maxTooEarly {
			select {
			case <-ctx.Done():
				return Pass{}, ctx.Err()
			case <-time.After(result.RequeueAfter):
				continue
			}
		}

		pass, err := d.passed(ctx, provider, denied)
		pass.Writes, pass.After = d.transport.Writes()[writes:], result.RequeueAfter

		return pass, err
	}
}

// tooEarly reports whether the last reconcile has to be repeated.
func (d *DryRun) tooEarly() bool {
	d.mu.Lock()
	defer d.mu.Unlock()

	if len(d.decisions) == 0 {
		return false
	}

	return d.decisions[len(d.decisions)-1].Step.Result.Outcome == report.Repeated
}

// passed returns what the last reconcile has decided. denied is how many requests were denied before.
func (d *DryRun) passed(ctx context.Context, provider v1alpha2.Provider, denied int) (Pass, error) {
	d.mu.Lock()
	pass := Pass{Lists: decide.Explain(d.decisions), Events: d.events, Unknown: d.unknown(denied)}
	d.mu.Unlock()

	now := provider.ProviderType().New()

	err := d.Client.Get(ctx, client.ObjectKeyFromObject(provider), now)
	if apierrors.IsNotFound(err) {
		pass.Gone = true
		return pass, nil
	}

	pass.Status = *now.GetStatus()

	return pass, err
}

// unknown returns which rows have asked what the user must not read.
func (d *DryRun) unknown(from int) []Unknown {
	var found []Unknown

	all := d.transport.Denied()
	row := ""

	for i := range len(d.decisions) + 1 {
		to := len(all)
		if i < len(d.decisions) {
			to = d.denied[i]
		}

		if to > from {
			found = append(found, Unknown{Row: row, Denied: slices.Compact(slices.Sorted(slices.Values(all[from:to])))})
		}

		if from = to; i < len(d.decisions) {
			row = d.decisions[i].Step.Row
		}
	}

	return found
}
