// Command operator is Capstan's controller manager. It installs Cluster API providers as Helm
// releases, as specified by the resources of operator.cluster.x-k8s.io.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	_ "time/tzdata" // for windows of spec.upgradePolicy: the image has no time zones

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
)

// version is set by the linker.
var version = "dev"

// flags are the values of the command line flags.
type flags struct {
	endpoints   endpoints
	upgradeCRDs bool
	showVersion bool

	config   controllers.Config
	requests requests
	election election
	log      logger.Options
}

func main() {
	f := &flags{}
	_ = f.set().Parse(os.Args[1:]) // it ends the program instead

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

// set returns the flags as a set that can be parsed, and that ends the program after an error.
func (f *flags) set() *pflag.FlagSet {
	set := pflag.NewFlagSet("operator", pflag.ExitOnError)
	f.endpoints.bindFlags(set)
	set.BoolVar(
		&f.upgradeCRDs,
		"upgrade-crds",
		false,
		"Upgrade the operator's own CustomResourceDefinitions before it starts.",
	)
	set.BoolVar(&f.showVersion, "version", false, "Print the version and exit.")
	f.config.BindFlags(set)
	f.requests.bindFlags(set)
	f.election.bindFlags(set)
	f.log.BindFlags(set)

	return set
}

func run(f *flags) error {
	scheme := runtime.NewScheme()
	kinds := []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha2.AddToScheme, crds.AddToScheme}

	for _, add := range kinds {
		if err := add(scheme); err != nil {
			return err
		}
	}

	options, err := f.options()
	if err != nil {
		return err
	}

	pprofAddress, err := f.endpoints.pprofAddress()
	if err != nil {
		return err
	}

	mgr, err := f.newManager(ctrl.Options{
		Scheme:           scheme,
		Cache:            controllers.CacheOptions(),
		Metrics:          metricsserver.Options{BindAddress: "0"}, // by endpoints
		PprofBindAddress: pprofAddress,
	})
	if err != nil {
		return err
	}

	if err := f.endpoints.addTo(mgr); err != nil {
		return err
	}

	ctx := ctrl.SetupSignalHandler()

	// The controllers cannot be set up for kinds that the API server does not serve.
	if err := prepareCRDs(ctx, mgr, f.upgradeCRDs); err != nil {
		return err
	}

	if options.ClusterctlInventory {
		prepareInventory(ctx, mgr)
	}

	if err := f.addTo(mgr, options); err != nil {
		return err
	}

	ctrl.Log.Info("starting", "version", version)

	return mgr.Start(ctx)
}

// options returns the settings of the controllers.
func (f *flags) options() (controllers.Options, error) {
	credentials, err := f.config.Credentials()
	if err != nil {
		return controllers.Options{}, err
	}

	options, err := f.config.Load(os.ReadFile, credentials)
	if err != nil {
		return options, err
	}

	options.Namespace = cmp.Or(podNamespace(), f.election.Namespace)
	if options.Namespace == "" {
		return options, errors.New("outside of a pod, set --leader-election-namespace")
	}

	options.Environment = plan.ReadEnvironment(f.config.EnvironmentNames)
	options.Metrics = metrics.NewRecorder(ctrlmetrics.Registry, version)

	return options, nil
}

// addTo adds the controllers, and what shows their work, to the manager.
func (f *flags) addTo(mgr ctrl.Manager, options controllers.Options) error {
	if err := controllers.Setup(mgr, options); err != nil {
		return err
	}

	live, err := controllers.NewUncachedClient(mgr)
	if err != nil {
		return err
	}

	publisher := &controllers.Publisher{
		Client: live, Namespace: options.Namespace, Version: version, Config: &f.config,
	}
	if err := mgr.Add(publisher); err != nil {
		return err
	}

	collector := metrics.NewProviderCollector(mgr.GetClient(), options.Scope.Includes)

	return ctrlmetrics.Registry.Register(collector)
}
