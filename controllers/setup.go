package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
)

// Options are the operator's settings.
type Options struct {
	// Holder identifies this process on the releases it works on; no two processes share one.
	Holder string
	// Scope is which resources are looked after.
	Scope Scope
	// Concurrency is how many resources of one kind are worked on at a time.
	Concurrency int
	// WatchConfigMaps and WatchSecrets make a change of a source's ConfigMap, or of the Secret with
	// variables, take effect at once. Without them it takes effect when the resource is next looked
	// at; one that waits for the change sees it at once anyway.
	WatchConfigMaps, WatchSecrets bool
	// DefaultServiceAccount is the name of the ServiceAccount, in each resource's namespace, with
	// whose rights providers are installed whose resources name none; empty for the operator's own.
	DefaultServiceAccount string
	// MigrationDelay is how long a healthy manager is given to rewrite objects in a new storage
	// version itself.
	MigrationDelay time.Duration
	// Registry is the operator's access to registries, and ImageRegistry the one that takes the
	// place of every image's.
	Registry      *fetch.Registry
	ImageRegistry string
	// ReadOnlyCharts are looked up in the chart repository and never pushed to it.
	ReadOnlyCharts bool
	// ConfigFile is a configuration in clusterctl's format, see fetch.ConfigFile.
	ConfigFile string
	// Metrics counts what happens; nil counts nothing.
	Metrics *metrics.Recorder
}

// CacheOptions keep out of the manager's cache what nobody reads from it: field managers, Helm's
// own Secrets, and what a namespace has that is not watched, except for provider resources.
func CacheOptions(scope Scope) cache.Options {
	notHelm := fields.OneTermNotEqualSelector("type", release.RecordType)

	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Namespaces: scope.caches()},
			&corev1.Secret{}:    {Namespaces: scope.caches(), Field: notHelm},
		},
	}
}

// Setup adds a controller for each kind to the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	if err := indexProviders(context.Background(), mgr.GetFieldIndexer()); err != nil { // nothing is read yet
		return err
	}

	woken := &wakers{}
	here := clusters.Connection{
		Config:     mgr.GetConfig(),
		HTTP:       mgr.GetHTTPClient(),
		Mapper:     mgr.GetRESTMapper(),
		Scheme:     mgr.GetScheme(),
		Namespaces: options.Scope.caches(),
	}

	local, err := clusters.NewCluster(here, options.Holder, woken.wake)
	if err != nil {
		return err
	}

	if err := mgr.Add(local); err != nil {
		return err
	}

	live, err := client.New(
		mgr.GetConfig(),
		client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()},
	)
	if err != nil {
		return err
	}

	resolver := &fetch.Resolver{
		Metadata: mgr.GetClient(),
		Reader:   live,
		Config:   &fetch.ConfigFile{Path: options.ConfigFile},
		Registry: options.Registry,
	}

	charts, err := newStore(mgr, live, options)
	if err != nil {
		return err
	}

	checker := &preflight.Checker{Reader: mgr.GetClient()}
	remote := &remoteWatches{Reader: mgr.GetClient(), wake: woken.wake}

	shared := Reconciler{
		Client: mgr.GetClient(),
		Live:   live,
		Scope:  options.Scope,
		Targets: &clusters.Registry{
			Local: local, Secrets: live, DefaultAccount: options.DefaultServiceAccount, Watch: remote.watch,
			Scheme: mgr.GetScheme(), Namespaces: options.Scope.caches(), Holder: options.Holder, Wake: woken.wake,
		},
		Target: local.Own(),
		Charts: &Charts{
			Sources: resolver,
			Store:   charts,
			Metrics: options.Metrics,
			Events:  mgr.GetEventRecorder("capstan"),
		},
		ImageRegistry: options.ImageRegistry,
		Preflight:     checker,
		Upgrades:      &Upgrades{Sources: resolver, Preflight: checker, Wake: woken.wake},
		Events:        mgr.GetEventRecorder("capstan"),

		Wake:           woken.wake,
		Permitted:      &sync.Map{},
		Corrections:    &corrections{},
		MigrationDelay: options.MigrationDelay,
		Metrics:        options.Metrics,
	}
	for _, t := range v1alpha2.ProviderTypes() {
		r := shared

		r.Type = t
		if err := r.setup(mgr, options, local, woken); err != nil {
			return fmt.Errorf("set up the controller of %s: %w", t, err)
		}
	}

	return nil
}

// newStore keeps charts in the cluster, and in the chart repository if there is one.
func newStore(mgr ctrl.Manager, live client.Client, options Options) (store.Store, error) {
	cluster := &store.Cluster{Client: live}
	if options.Registry.Charts == nil {
		return cluster, nil
	}

	layered := &store.Layered{
		Cluster: cluster, ReadOnly: options.ReadOnlyCharts, OnPending: options.Metrics.ChartsWaiting,
		Registry: &store.Registry{Client: options.Registry.Client, Repository: *options.Registry.Charts},
	}

	return layered, mgr.Add(layered)
}

// setup adds the controller of one kind, with all that brings its resources back.
func (r *Reconciler) setup(mgr ctrl.Manager, options Options, local *clusters.Cluster, woken *wakers) error {
	touched := predicate.Or(
		predicate.GenerationChangedPredicate{},
		predicate.AnnotationChangedPredicate{},
		predicate.LabelChangedPredicate{},
	)
	// Seven controllers with a dozen watches each tell a hundred times that they start: that is for
	// debugging.
	logger := func(req *reconcile.Request) logr.Logger {
		if req == nil {
			return mgr.GetLogger().V(1)
		}

		return mgr.GetLogger().WithValues("kind", r.Type, "namespace", req.Namespace, "name", req.Name)
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(string(r.Type)).
		For(r.Type.New(), builder.WithPredicates(touched, predicate.NewPredicateFuncs(r.Scope.Includes))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: options.Concurrency,
			LogConstructor:          logger,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				time.Second,
				longestRetry,
			),
		}).
		WatchesMetadata(&corev1.ConfigMap{}, r.onConfigMap(options.WatchConfigMaps)).
		WatchesMetadata(&corev1.Secret{}, r.onSecret(options.WatchSecrets)).
		WatchesRawSource(source.Kind(local.Definitions, &apiextensionsv1.CustomResourceDefinition{}, r.onDefinition(), definitionChanged)).
		WatchesRawSource(r.onHistory(local.History)).
		WatchesRawSource(woken.source(r.Type))

	return r.watchProviders(b).Complete(r)
}

// wakers lead from the health of objects to the controllers' queues.
type wakers struct {
	mu     sync.Mutex
	queues map[v1alpha2.ProviderType]func(reconcile.Request, time.Duration)
}

// source registers a controller's queue once the controller runs.
func (w *wakers) source(t v1alpha2.ProviderType) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()

		if w.queues == nil {
			w.queues = map[v1alpha2.ProviderType]func(reconcile.Request, time.Duration){}
		}

		w.queues[t] = func(req reconcile.Request, after time.Duration) { queue.AddAfter(req, after) }

		return nil
	})
}

// wake queues the resource of a provider's label in a namespace, for after a while.
func (w *wakers) wake(label, namespace string, after time.Duration) {
	t, name := v1alpha2.ParseLabel(label)

	w.mu.Lock()
	add := w.queues[t]
	w.mu.Unlock()

	if add != nil && namespace != "" {
		add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}, after)
	}
}

func secretMetadata() client.Object {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	return o
}
