// Package clusters connects to the clusters that providers are installed into. A provider's target
// is a cluster together with an identity to act as there: by default the cluster that the provider
// resources are in, with the operator's own permissions.
package clusters

import (
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/paging"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/takeover"
)

// Target is a cluster, and an account to act as there.
type Target struct {
	// Client reads and writes objects as Account. It is not cached.
	Client client.Client
	// APIReader reads objects, uncached, with the permissions of the connection.
	APIReader client.Reader
	// Metadata reads the metadata of objects of any kind, uncached, with the permissions of the
	// connection.
	Metadata metadata.Interface
	// CRDs applies CustomResourceDefinitions as Account.
	CRDs *crds.Applier
	// Releases installs Helm releases as Account.
	Releases *release.Engine
	// Health tracks the health of objects. All targets in the cluster share it.
	Health *health.Tracker
	// Account is the user that is impersonated; empty for that of the connection itself.
	Account string
	// Remote reports whether the cluster is reached by a kubeconfig.
	Remote bool

	cluster *Cluster
}

// newTarget creates the target for an account, whose clients are given.
func (c *Cluster) newTarget(account string, as clients) *Target {
	options := release.Options{}
	if account == "" && !c.connection.Remote {
		options.Records = c.releaseRecords // an account sees only what it may read itself
	}

	return &Target{
		Client:    as.client,
		APIReader: c.client,
		Metadata:  c.metadata,
		CRDs:      c.newApplier(as),
		Releases:  release.NewEngine(as.releases, options),
		Health:    c.tracker,
		Account:   account,
		Remote:    c.connection.Remote,
		cluster:   c,
	}
}

// newApplier creates an applier of CRDs. All appliers of the cluster share what they know of it.
func (c *Cluster) newApplier(as clients) *crds.Applier {
	finder := takeover.Finder{Metadata: c.metadata, Definitions: c.definitions()}

	clients := crds.Clients{
		Metadata:  as.metadata,
		Client:    c.definitions(),
		APIReader: as.client,
		Objects:   trial.ClusterObjects{Client: as.objects},

		HasRelease:  c.isInstalled,
		HasProvider: finder.Anywhere,
	}

	if c.own == nil {
		return crds.NewApplier(clients)
	}

	return c.own.CRDs.WithClients(clients)
}

// clients are those of an account. They share an HTTP client.
type clients struct {
	client   client.WithWatch
	metadata metadata.Interface
	objects  dynamic.Interface
	releases *apply.Connection
}

// clientsOf returns the clients of an account; an empty one is that of the connection. Only that discovers which kinds
// the cluster has.
func (c Connection) clientsOf(account string, kinds *apply.Kinds) (as clients, err error) {
	config, httpClient := c.Config, c.HTTPClient

	if account != "" {
		config = rest.CopyConfig(c.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: account}

		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return as, err
		}
	}

	as.client, err = client.NewWithWatch(
		config, client.Options{Scheme: c.Scheme, Mapper: c.Mapper, HTTPClient: httpClient})
	if err != nil {
		return as, err
	}

	as.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), paging.Impatient(httpClient))
	if err != nil {
		return as, err
	}

	if as.objects, err = dynamic.NewForConfigAndClient(config, httpClient); err != nil {
		return as, err
	}

	as.releases, err = apply.Connect(config, httpClient, kinds)

	return as, err
}
