// Command operator is Capstan's controller manager: it keeps Cluster API providers installed as
// Helm releases, as the resources of operator.cluster.x-k8s.io say.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/pkg/runtime/client"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/fluxcd/pkg/runtime/pprof"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/config/crd"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/watch"
)

// version is set by the linker.
var version = "dev"

// flags are what the command line says.
type flags struct {
	metricsAddress string
	healthAddress  string
	upgradeCRDs    bool
	showVersion    bool

	watchNamespaces    []string
	watchLabelSelector string

	chartRepository, registryConfig, registryCA string

	controllers controllers.Options
	client      client.Options
	election    leaderelection.Options
	log         logger.Options
}

func main() {
	f := parse()
	if f.showVersion {
		fmt.Println(version)
		return
	}

	logger.SetLogger(logger.NewLogger(f.log))
	release.RedirectStandardLog(ctrl.Log.WithName("helm"))

	if err := run(f); err != nil {
		ctrl.Log.Error(err, "the operator stops")
		os.Exit(1)
	}
}

func parse() *flags {
	f := &flags{}
	set := pflag.NewFlagSet("operator", pflag.ExitOnError)
	set.StringVar(
		&f.metricsAddress,
		"metrics-bind-address",
		":8080",
		"Address of the metrics and of pprof; 0 turns them off.",
	)
	set.StringVar(&f.healthAddress, "health-probe-bind-address", ":9440", "Address of /healthz and /readyz.")
	set.StringSliceVar(
		&f.watchNamespaces,
		"watch-namespaces",
		nil,
		"The namespaces whose providers the operator looks after, separated by commas; of others it reads nothing but provider resources, so that core there counts as core. Default: all.",
	)
	set.StringVar(
		&f.watchLabelSelector,
		"watch-label-selector",
		"",
		"The labels of the provider resources that the operator looks after, e.g. team=a. Those without only count: as core, and as the one resource that a provider can have. Default: all.",
	)
	set.IntVar(&f.controllers.Concurrency, "concurrency", 4, "How many resources of one kind are worked on at a time.")
	set.BoolVar(
		&f.controllers.WatchConfigMaps,
		"watch-configmap",
		false,
		"Upgrade a provider as soon as the ConfigMap it was made from changes.",
	)
	set.BoolVar(
		&f.controllers.WatchSecrets,
		"watch-configsecret",
		false,
		"Upgrade a provider as soon as the Secret with its variables changes.",
	)
	set.DurationVar(
		&f.controllers.MigrationDelay,
		"crd-migration-delay",
		time.Minute,
		"How long a healthy provider is given to rewrite objects in a new storage version itself, before the operator does.",
	)
	set.StringVar(
		&f.controllers.ConfigFile,
		"config",
		fetch.DefaultConfigFile,
		"A file in the format of clusterctl's configuration, a mounted ConfigMap for example: providers, images, overridesFolder. The default one need not exist.",
	)
	set.StringVar(
		&f.controllers.DefaultServiceAccount,
		"default-service-account",
		"",
		"The ServiceAccount, in each resource's namespace, with whose rights providers are installed whose resources name none. Default: the operator's own rights.",
	)
	set.BoolVar(
		&f.upgradeCRDs,
		"upgrade-crds",
		false,
		"Bring the operator's own CustomResourceDefinitions to its version before it starts.",
	)
	set.StringVar(
		&f.chartRepository,
		"chart-repository",
		"",
		"Where charts are kept besides the cluster, e.g. oci://registry.example.com/capi/charts: looked up first, pushed to when they had to be made.",
	)
	set.BoolVar(&f.controllers.ReadOnlyCharts, "chart-repository-read-only", false, "Never push to the chart repository.")
	set.StringVar(
		&f.controllers.ImageRegistry,
		"image-registry",
		"",
		"A registry, as host[:port][/path], that takes the place of every image's.",
	)
	set.StringVar(
		&f.registryConfig,
		"registry-config",
		"",
		"A file with credentials for registries, as docker has it: a mounted Secret of the type kubernetes.io/dockerconfigjson.",
	)
	set.StringVar(
		&f.registryCA,
		"registry-ca",
		"",
		"A file with the certificates of authorities that sign registries' certificates, besides the system's.",
	)
	set.BoolVar(&f.showVersion, "version", false, "Print the version and exit.")
	f.client.BindFlags(set)
	f.election.BindFlags(set)
	f.log.BindFlags(set)
	_ = set.Parse(os.Args[1:]) // ExitOnError

	return f
}

func run(f *flags) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}

	f.controllers.Metrics = metrics.NewRecorder(ctrlmetrics.Registry, version)

	host, err := os.Hostname()
	if err != nil {
		return err
	}

	f.controllers.Holder = host + "_" + string(uuid.NewUUID())
	if f.controllers.Scope, err = watch.NewScope(f.watchNamespaces, f.watchLabelSelector); err != nil {
		return err
	}

	if f.controllers.Registry, err = fetch.NewRegistry(f.chartRepository, f.registryConfig, f.registryCA); err != nil {
		return err
	}

	mgr, err := ctrl.NewManager(client.GetConfigOrDie(f.client), ctrl.Options{
		Scheme: scheme,
		Cache:  controllers.CacheOptions(f.controllers.Scope),
		Metrics: metricsserver.Options{
			BindAddress:   f.metricsAddress,
			ExtraHandlers: pprof.GetHandlers(),
		},
		HealthProbeBindAddress:        f.healthAddress,
		LeaderElection:                f.election.Enable,
		LeaderElectionID:              "capstan.operator.cluster.x-k8s.io",
		LeaderElectionReleaseOnCancel: f.election.ReleaseOnCancel,
		LeaseDuration:                 &f.election.LeaseDuration,
		RenewDeadline:                 &f.election.RenewDeadline,
		RetryPeriod:                   &f.election.RetryPeriod,
	})
	if err != nil {
		return err
	}

	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}

	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}

	if err := controllers.Setup(mgr, f.controllers); err != nil {
		return err
	}

	if err := ctrlmetrics.Registry.Register(metrics.NewProviderCollector(mgr.GetClient(), f.controllers.Scope.Includes)); err != nil {
		return err
	}

	ctx := ctrl.SetupSignalHandler()
	if f.upgradeCRDs {
		if err := upgradeCRDs(ctx, mgr); err != nil {
			return err
		}
	}

	ctrl.Log.Info("starting", "version", version, "holder", f.controllers.Holder)

	return mgr.Start(ctx)
}

// upgradeCRDs works before the manager starts, so without its cache.
func upgradeCRDs(ctx context.Context, mgr ctrl.Manager) error {
	live, err := ctrlclient.New(
		mgr.GetConfig(),
		ctrlclient.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()},
	)
	if err != nil {
		return err
	}

	return crd.Upgrade(ctx, live, version)
}
