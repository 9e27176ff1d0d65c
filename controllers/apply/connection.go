package apply

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/paging"
)

// Connection is what all actions of an account on the releases of one cluster share.
type Connection struct {
	*Kinds

	// Secrets reads and writes the records of releases, and Metadata reads the metadata of objects.
	Secrets  corev1.SecretsGetter
	Metadata metadata.Interface

	client client.Client
	trial  client.Client // its changes are dry runs
}

// requestTimeout limits each request, unless the configuration does.
const requestTimeout = 30 * time.Second

// Connect returns a connection of the configuration's account, with an HTTP client for that and the kinds of the
// cluster. It makes no request.
func Connect(config *rest.Config, httpClient *http.Client, kinds *Kinds) (*Connection, error) {
	httpClient = withTimeout(httpClient)

	secrets, err := corev1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), paging.Impatient(httpClient))
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	objects, err := client.New(config, client.Options{HTTPClient: httpClient, Mapper: kinds.mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	objects = client.WithFieldOwner(objects, v1alpha2.FieldOwner)

	return &Connection{
		Kinds: kinds, Secrets: secrets, Metadata: metadataClient, client: objects, trial: client.NewDryRunClient(objects),
	}, nil
}

// withTimeout returns an HTTP client like another one, which shares its connections.
func withTimeout(c *http.Client) *http.Client {
	timed := *c
	timed.Timeout = cmp.Or(c.Timeout, requestTimeout)

	return &timed
}
