package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/release"
)

// requestTimeout limits each request to the management cluster, unless --request-timeout is set. It is longer than the
// 30 seconds that a connection may take, whose error says more.
const requestTimeout = 32 * time.Second

// ClusterFlags are kubectl's connection flags. All commands that talk to a management cluster have
// them.
type ClusterFlags struct {
	kubectl   *genericclioptions.ConfigFlags
	namespace string
}

// AddClusterFlags adds the connection flags to a command. The help names only those that are used most, and says that
// there are others.
func AddClusterFlags(flags *pflag.FlagSet) *ClusterFlags {
	f := &ClusterFlags{kubectl: genericclioptions.NewConfigFlags(true)}
	f.kubectl.CacheDir = nil  // nothing is cached on disk
	f.kubectl.Namespace = nil // --namespace is a filter here, and never taken from the kubeconfig
	f.kubectl.WrapConfigFn = f.explain

	connection := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.kubectl.AddFlags(connection)
	connection.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = flag.Name != "kubeconfig" && flag.Name != "context"
		flags.AddFlag(flag)
	})
	flags.StringVarP(&f.namespace, "namespace", "n", "", "Namespace of the providers. Default: all.")

	connection.AddFlag(flags.Lookup("namespace"))
	connection.VisitAll(func(flag *pflag.Flag) { _ = connection.SetAnnotation(flag.Name, connectionAnnotation, nil) })

	return f
}

// Named reports whether a flag names a cluster.
func (f *ClusterFlags) Named() bool {
	return *f.kubectl.KubeConfig != "" || *f.kubectl.Context != "" || *f.kubectl.ClusterName != "" ||
		*f.kubectl.APIServer != ""
}

// Getter returns what Helm connects to the cluster with.
func (f *ClusterFlags) Getter() genericclioptions.RESTClientGetter { return f.kubectl }

// Cluster is a connection to the management cluster.
type Cluster struct {
	Config    *rest.Config
	Client    client.Client // reads from the API server, without a cache
	Metadata  metadata.Interface
	CRDs      *crds.Applier
	Releases  *release.Engine
	Namespace string // the value of --namespace; empty means all
}

// typeMismatch is what the error for a file that is no kubeconfig says about types of Go.
var typeMismatch = regexp.MustCompile(`(: couldn't get version/kind; json parse error)?: json: cannot unmarshal .*`)

// Connect creates the clients. It makes no request.
func (f *ClusterFlags) Connect() (*Cluster, error) {
	config, err := f.restConfig()
	if err != nil {
		return nil, fmt.Errorf("find the management cluster: %s; select one with --kubeconfig or --context",
			typeMismatch.ReplaceAllString(err.Error(), ": it is not a kubeconfig"))
	}

	if config.Timeout == 0 {
		config.Timeout = requestTimeout
	}

	config.QPS = -1                           // leave throttling to the API server
	config.WarningHandler = rest.NoWarnings{} // they are about what providers publish

	scheme := runtime.NewScheme()
	if err := errors.Join(
		clientgoscheme.AddToScheme(scheme),
		crds.AddToScheme(scheme),
		v1alpha2.AddToScheme(scheme),
	); err != nil {
		return nil, err
	}

	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the management cluster: %w", err)
	}

	connected, err := clusters.NewCluster(clusters.Connection{
		Config: config, HTTPClient: httpClient, Scheme: scheme, Remote: true, // nothing is watched
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to the management cluster: %w", err)
	}

	own := connected.OwnTarget()

	return &Cluster{
		Config: config, Client: own.Client, Metadata: own.Metadata, CRDs: own.CRDs, Releases: own.Releases,
		Namespace: f.namespace,
	}, nil
}

// Views returns a reader of what commands show of providers, with the user's permissions.
func (c *Cluster) Views() *view.Reader { return &view.Reader{Client: c.Client, Releases: c.Releases} }

// Connect returns the printer and the connection of a command, and an error if the flags of either are invalid. It
// makes no request.
func (o *Options) Connect(output *OutputFlags, cluster *ClusterFlags) (*Printer, *Cluster, error) {
	printer, err := output.Printer(o.Out)
	if err != nil {
		return nil, nil, err
	}

	c, err := cluster.Connect()

	return printer, c, err
}

// restConfig returns the connection's configuration. Without any configuration kubectl's library
// would try localhost:8080; that is an error here.
func (f *ClusterFlags) restConfig() (*rest.Config, error) {
	raw, err := f.kubectl.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, err
	}

	inCluster := os.Getenv("KUBERNETES_SERVICE_HOST") != ""
	if len(raw.Clusters) == 0 && *f.kubectl.APIServer == "" && !inCluster {
		places := f.kubectl.ToRawKubeConfigLoader().ConfigAccess().GetLoadingPrecedence()
		return nil, fmt.Errorf("no kubeconfig was found: %s", strings.Join(places, ", "))
	}

	return f.kubectl.ToRESTConfig()
}
