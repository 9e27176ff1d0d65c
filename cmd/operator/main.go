// Command operator is Capstan's controller manager. It installs Cluster API providers as Helm
// releases, as specified by the resources of operator.cluster.x-k8s.io.
package main

import (
	"fmt"
	"os"
	"time"
	_ "time/tzdata" // for windows of spec.upgradePolicy: the image has no time zones

	"github.com/fluxcd/pkg/runtime/client"
	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/managers"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/watch"
)

// version is set by the linker.
var version = "dev"

// flags are the values of the command line flags.
type flags struct {
	endpoints     endpoints
	statusPage    statusPage
	healthAddress string
	upgradeCRDs   bool
	showVersion   bool

	watchNamespaces    []string
	watchLabelSelector string
	environment        []string

	chartRepository string
	charts          fetch.ChartOptions
	registryConfig  string
	registryCA      string
	managers        managers.Flags

	controllers controllers.Options
	client      client.Options
	election    election
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
		ctrl.Log.Error(err, "unable to run the operator")
		os.Exit(1)
	}
}

func parse() *flags {
	f := &flags{}
	set := pflag.NewFlagSet("operator", pflag.ExitOnError)
	f.endpoints.bindFlags(set)
	f.statusPage.bindFlags(set)
	set.StringVar(&f.healthAddress, "health-probe-bind-address", ":9440", "Address of /healthz and /readyz.")
	set.StringSliceVar(
		&f.watchNamespaces,
		"watch-namespaces",
		nil,
		"Comma-separated namespaces whose providers the operator manages. In others it only reads provider "+
			"resources, to find core and providers that exist only once. Default: all.",
	)
	set.StringVar(
		&f.watchLabelSelector,
		"watch-label-selector",
		"",
		"Label selector for the provider resources that the operator manages, such as team=a. It only reads "+
			"the others, to find core and providers that exist only once. Default: all.",
	)
	set.IntVar(
		&f.controllers.Concurrency,
		"concurrency",
		4,
		"Number of resources of one kind that are reconciled concurrently.",
	)
	set.BoolVar(
		&f.controllers.Suspended,
		"suspend",
		false,
		"Change nothing, as if spec.suspend of all provider resources were true, also of those that are created later.",
	)
	set.BoolVar(
		&f.controllers.WatchConfigMaps,
		"watch-configmap",
		false,
		"Upgrade a provider as soon as the ConfigMap with its components changes.",
	)
	set.BoolVar(
		&f.controllers.WatchSecrets,
		"watch-configsecret",
		false,
		"Upgrade a provider as soon as the Secret with its variables changes.",
	)
	set.BoolVar(
		&f.controllers.LabeledConfigMaps,
		fetch.LabeledConfigMapsFlag,
		false,
		"Install providers without fetchConfig from ConfigMaps in their namespace that have cluster-api-operator's "+
			"labels, if there are any. Users who may write ConfigMaps there can then decide what is installed.",
	)
	set.BoolVar(
		&f.controllers.ComponentsConfigMaps,
		"components-configmaps",
		false,
		"Write the components of each provider that is fetched into a ConfigMap, as cluster-api-operator does, for "+
			"programs that read it.",
	)
	set.BoolVar(
		&f.controllers.ClusterctlInventory,
		"clusterctl-inventory",
		true,
		"Keep clusterctl's inventory, so that clusterctl knows the providers of the operator's cluster.",
	)
	set.DurationVar(
		&f.controllers.MigrationDelay,
		"crd-migration-delay",
		time.Minute,
		"How long a healthy provider may take to migrate its objects to a new storage version, before the "+
			"operator migrates them.",
	)
	set.StringVar(
		&f.controllers.ConfigFile,
		"config",
		fetch.DefaultConfigFile,
		"Configuration file in clusterctl's format, such as a mounted ConfigMap, with the keys providers, images "+
			"and overridesFolder. The default one is optional.",
	)
	set.StringVar(
		&f.controllers.DefaultServiceAccount,
		"default-service-account",
		"",
		"ServiceAccount in the resource's namespace to impersonate when spec.serviceAccountName is unset. "+
			"Default: none, which means that the operator uses its own permissions.",
	)
	set.BoolVar(
		&f.upgradeCRDs,
		"upgrade-crds",
		false,
		"Upgrade the operator's own CustomResourceDefinitions before it starts.",
	)
	set.StringVar(
		&f.chartRepository,
		"chart-repository",
		"",
		"Repository with charts, such as oci://registry.example.com/capi/charts, in which the operator looks "+
			"first for providers without fetchConfig.",
	)
	set.BoolVar(
		&f.controllers.PushCharts,
		"push-charts",
		false,
		"Push the charts of the catalog's providers that the operator builds to the chart repository.",
	)
	f.charts.BindFlags(set)
	set.StringVar(
		&f.controllers.ImageRegistry,
		"image-registry",
		"",
		"Registry, as host[:port][/path], that replaces that of every image.",
	)
	set.StringSliceVar(
		&f.environment,
		"variables-from-environment",
		nil,
		"Comma-separated names of the operator's environment variables that providers get as variables, unless "+
			"their resource sets them or runs as a ServiceAccount. Default: none.",
	)
	set.StringVar(
		&f.registryConfig,
		"registry-config",
		"",
		"File with credentials for registries in docker's format, such as a mounted Secret of the type "+
			"kubernetes.io/dockerconfigjson.",
	)
	set.StringVar(
		&f.registryCA,
		"registry-ca",
		"",
		"File with CA certificates for registries, in addition to those of the system.",
	)
	set.BoolVar(&f.showVersion, "version", false, "Print the version and exit.")
	f.managers.BindFlags(set)
	f.controllers.ACL.BindFlags(set)
	f.controllers.SourcePolicy.BindFlags(set)
	set.BoolVar(
		&f.controllers.KubeConfig.InsecureExecProvider,
		"insecure-kubeconfig-exec",
		false,
		"Allow kubeconfigs of remote clusters to run programs in the operator (exec).",
	)
	set.BoolVar(
		&f.controllers.KubeConfig.InsecureTLS,
		"insecure-kubeconfig-tls",
		false,
		"Allow kubeconfigs of remote clusters to disable the verification of TLS certificates, or TLS.",
	)
	set.StringSliceVar(
		&f.controllers.KubeConfigAddresses,
		"allowed-kubeconfig-addresses",
		nil,
		"Comma-separated ranges of IP addresses, such as 127.0.0.0/8, that the API servers of kubeconfigs and their "+
			"proxies may have although they are loopback, link-local or otherwise special. Default: none.",
	)
	set.DurationVar(
		&f.controllers.RemoteInterval,
		"remote-interval",
		5*time.Minute,
		"How often to look at what is installed in remote clusters while nothing changes, at least 10s.",
	)
	f.client.BindFlags(set)
	f.election.bindFlags(set)
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
	f.controllers.Namespace = f.election.namespace()
	f.controllers.Environment = plan.ReadEnvironment(f.environment)

	if f.controllers.Scope, err = watch.NewScope(f.watchNamespaces, f.watchLabelSelector); err != nil {
		return err
	}

	if f.controllers.Registry, err = fetch.NewRegistry(f.chartRepository, f.registryConfig, f.registryCA); err != nil {
		return err
	}

	f.controllers.Registry.ChartOptions = f.charts

	if f.controllers.Managers, err = f.managers.Load(); err != nil {
		return err
	}

	metricsOptions, err := f.endpoints.metricsOptions()
	if err != nil {
		return err
	}

	pprofAddress, err := f.endpoints.pprofAddress()
	if err != nil {
		return err
	}

	mgr, err := f.newManager(ctrl.Options{
		Scheme:                 scheme,
		Cache:                  controllers.CacheOptions(f.controllers.Scope),
		Metrics:                metricsOptions,
		PprofBindAddress:       pprofAddress,
		HealthProbeBindAddress: f.healthAddress,
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

	ctx := ctrl.SetupSignalHandler()

	// The controllers cannot be set up for kinds that the API server does not serve.
	if err := prepareCRDs(ctx, mgr, f.upgradeCRDs); err != nil {
		return err
	}

	if err := f.addTo(mgr); err != nil {
		return err
	}

	ctrl.Log.Info("starting", "version", version, "holder", f.controllers.Holder)

	return mgr.Start(ctx)
}

// addTo adds the controllers, and what shows their work, to the manager.
func (f *flags) addTo(mgr ctrl.Manager) error {
	facts, err := controllers.Setup(mgr, f.controllers)
	if err != nil {
		return err
	}

	if err := f.statusPage.addTo(mgr, facts); err != nil {
		return err
	}

	collector := metrics.NewProviderCollector(mgr.GetClient(), f.controllers.Scope.Includes)

	return ctrlmetrics.Registry.Register(collector)
}
