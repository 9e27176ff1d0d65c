// Package clusters connects to the clusters that providers are installed into. A provider's target
// is a cluster together with an identity to act as there: by default the cluster that the provider
// resources are in, with the operator's own permissions.
package clusters

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/release"
)

// OperatorExtra is what the operator adds to an account that it impersonates when it writes release records. Other
// users may not add it, so the chart's admission policies recognize the operator by it.
const OperatorExtra = v1alpha2.Prefix + "/operator"

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

// newTarget creates the target for an account.
func (c *Cluster) newTarget(account string) (*Target, error) {
	config, httpClient, err := c.connection.impersonate(account)
	if err != nil {
		return nil, err
	}

	uncached, err := client.New(
		config, client.Options{Scheme: c.connection.Scheme, Mapper: c.connection.Mapper, HTTPClient: httpClient})
	if err != nil {
		return nil, err
	}

	options := release.Options{Holder: c.holder}
	if account == "" && !c.connection.Remote {
		options.Records = c.releaseRecords // an account sees only what it may read itself
	} else if !c.connection.Remote { // there, the user of the kubeconfig need not be allowed to add it
		options.RecordExtra = map[string][]string{OperatorExtra: {"true"}}
	}

	releases, err := release.NewEngine(config, options)
	if err != nil {
		return nil, err
	}

	applier, err := c.newApplier(config, httpClient)
	if err != nil {
		return nil, err
	}

	return &Target{
		Client:    uncached,
		APIReader: c.apiReader,
		Metadata:  c.metadata,
		CRDs:      applier,
		Releases:  releases,
		Health:    c.tracker,
		Account:   account,
		Remote:    c.connection.Remote,
		cluster:   c,
	}, nil
}

// newApplier creates an applier of CRDs. All appliers of the cluster share what they know of it.
func (c *Cluster) newApplier(config *rest.Config, httpClient *http.Client) (*crds.Applier, error) {
	definitions, err := c.connection.definitionsClient(config, httpClient)
	if err != nil {
		return nil, err
	}

	writer, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, err
	}

	objects, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}

	clients := crds.Clients{
		Metadata:  writer,
		Client:    c.definitions,
		APIReader: definitions,
		Objects:   trial.ClusterObjects{Client: objects},

		HasRelease: c.readRelease,
	}

	if c.own == nil {
		return crds.NewApplier(clients), nil
	}

	return c.own.CRDs.WithClients(clients), nil
}

// definitionsClient returns a client of CRDs, and of objects without types.
func (c Connection) definitionsClient(config *rest.Config, httpClient *http.Client) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := crds.AddToScheme(scheme); err != nil {
		return nil, err
	}

	return client.New(config, client.Options{Scheme: scheme, Mapper: c.Mapper, HTTPClient: httpClient})
}

// impersonate returns how to connect as an account; an empty one is that of the connection.
func (c Connection) impersonate(account string) (*rest.Config, *http.Client, error) {
	if account == "" {
		return c.Config, c.HTTPClient, nil
	}

	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: account}

	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("impersonate %s: %w", account, err)
	}

	return config, httpClient, nil
}
