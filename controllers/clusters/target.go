// Package clusters is where providers are installed: a cluster, with the watches on it, and with
// whose rights things are done there. Most often that is the cluster that the provider resources
// are in, with the operator's own rights.
package clusters

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Target is a cluster, with somebody's rights.
type Target struct {
	// Cluster reads and writes objects, at the API server itself.
	Cluster client.Client
	// Reader reads with the rights of the connection.
	Reader client.Reader
	// Metadata reads the metadata of objects of any kind with the rights of the connection.
	Metadata metadata.Interface
	// CRDs, Releases and Health are those of the cluster.
	CRDs     *crds.Applier
	Releases *release.Engine
	Health   *health.Tracker
	// Account is the user whose rights are used; empty for those that the connection includes.
	Account string
	// Remote says that it is not the cluster that the provider resources are in.
	Remote bool
}

// Connection leads to a cluster.
type Connection struct {
	Config *rest.Config
	HTTP   *http.Client
	Mapper meta.RESTMapper
	Scheme *runtime.Scheme
	// Namespaces that are watched; empty for all. What is in others is read from the API server.
	Namespaces map[string]cache.Config
}

// Cluster holds the watches on a cluster, which all targets there share.
type Cluster struct {
	connection Connection
	// Definitions holds all CRDs, without their schemas; Objects those that belong to providers;
	// History the metadata of Helm's records.
	Definitions, Objects, History cache.Cache
	live                          client.Reader
	tracker                       *health.Tracker
	own                           *Target
	holder                        string
}

// NewCluster makes the watches, which Start starts. wake is told of providers whose objects have
// changed.
func NewCluster(c Connection, holder string, wake health.Wake) (*Cluster, error) {
	definitions := runtime.NewScheme()
	if err := crds.AddToScheme(definitions); err != nil {
		return nil, err
	}

	cluster := &Cluster{connection: c, holder: holder}

	var errs [3]error
	// All CRDs: one that a provider includes can be there already as somebody else's, with whatever
	// labels.
	cluster.Definitions, errs[0] = c.cache(cache.Options{Scheme: definitions, DefaultTransform: crds.StripSchemas})
	cluster.Objects, errs[1] = c.cache(cache.Options{
		DefaultNamespaces:    c.Namespaces,
		DefaultLabelSelector: providerObjects(),
		DefaultTransform:     cache.TransformStripManagedFields(),
	})

	cluster.History, errs[2] = c.cache(cache.Options{
		DefaultNamespaces:    c.Namespaces,
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"owner": "helm"}),
		DefaultFieldSelector: fields.OneTermEqualSelector("type", storage.RecordType),
		DefaultTransform:     onlyLabels,
	})
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}

	live, err := client.New(c.Config, client.Options{Scheme: c.Scheme, Mapper: c.Mapper, HTTPClient: c.HTTP})
	if err != nil {
		return nil, err
	}

	if len(c.Namespaces) > 0 {
		cluster.Objects = &namespaced{Cache: cluster.Objects, namespaces: c.Namespaces, others: live}
	}

	cluster.live, cluster.tracker = live, health.NewTracker(cluster.Objects, live, wake)
	cluster.own, err = cluster.as("")

	return cluster, err
}

// Start runs the watches until ctx ends.
func (c *Cluster) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, watches := range []cache.Cache{c.Definitions, c.Objects, c.History} {
		group.Go(func() error { return watches.Start(ctx) })
	}

	return group.Wait()
}

// Own is the cluster with the rights of its connection.
func (c *Cluster) Own() *Target { return c.own }

// as is the cluster with a user's rights; with an empty one, those of the connection.
func (c *Cluster) as(user string) (*Target, error) {
	config, httpClient := c.connection.Config, c.connection.HTTP
	if user != "" {
		config = rest.CopyConfig(config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user}

		var err error
		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("act as %s: %w", user, err)
		}
	}

	t := &Target{Reader: c.live, Health: c.tracker, Account: user}

	var err error
	if t.Cluster, err = client.New(
		config,
		client.Options{Scheme: c.connection.Scheme, Mapper: c.connection.Mapper, HTTPClient: httpClient},
	); err != nil {
		return nil, err
	}

	if t.Releases, err = release.NewEngine(config, release.Options{Holder: c.holder}); err != nil {
		return nil, err
	}

	if t.CRDs, err = c.applier(config, httpClient); err != nil {
		return nil, err
	}

	if t.Metadata = t.CRDs.Metadata; c.own != nil {
		t.Metadata = c.own.Metadata
	}

	return t, nil
}

func (c *Cluster) applier(config *rest.Config, httpClient *http.Client) (*crds.Applier, error) {
	scheme := runtime.NewScheme()
	if err := crds.AddToScheme(scheme); err != nil {
		return nil, err
	}

	writer, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, err
	}

	live, err := client.New(config, client.Options{Scheme: scheme, Mapper: c.connection.Mapper, HTTPClient: httpClient})
	if err != nil {
		return nil, err
	}

	objects, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}

	clients := crds.Clients{
		Metadata:  writer,
		Client:    c.Definitions,
		APIReader: live,
		Objects:   safety.ClusterObjects{Client: objects},
	}
	if c.own != nil {
		return c.own.CRDs.WithClients(clients), nil
	}

	return crds.NewApplier(clients), nil
}

func (c Connection) cache(options cache.Options) (cache.Cache, error) {
	if options.Scheme == nil {
		options.Scheme = c.Scheme
	}

	options.Mapper, options.HTTPClient = c.Mapper, c.HTTP

	return cache.New(c.Config, options)
}

// namespaced reads objects in namespaces that are not watched, which few releases have, from the
// API server.
type namespaced struct {
	cache.Cache
	namespaces map[string]cache.Config
	others     client.Reader
}

// Get reads an object.
func (n *namespaced) Get(
	ctx context.Context,
	key client.ObjectKey,
	object client.Object,
	opts ...client.GetOption,
) error {
	if _, watched := n.namespaces[key.Namespace]; watched || key.Namespace == "" {
		return n.Cache.Get(ctx, key, object, opts...)
	}

	return n.others.Get(ctx, key, object, opts...)
}

// providerObjects selects everything that belongs to a provider.
func providerObjects() labels.Selector {
	exists, err := labels.NewRequirement(v1alpha2.ClusterctlProviderLabel, selection.Exists, nil)
	if err != nil {
		return labels.Nothing()
	}

	return labels.NewSelector().Add(*exists)
}

// onlyLabels keeps of a record's metadata what is looked at.
func onlyLabels(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		m.ManagedFields, m.Annotations, m.OwnerReferences = nil, nil, nil
	}

	return object, nil
}
