package main

import (
	"context"

	"github.com/fluxcd/cli-utils/pkg/flowcontrol"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// requests limit the operator's requests to an API server that does not do so itself.
type requests struct {
	qps   float32
	burst int
}

func (r *requests) bindFlags(set *pflag.FlagSet) {
	set.Float32Var(&r.qps, "kube-api-qps", 50,
		"The maximum queries-per-second of requests sent to the Kubernetes API.")
	set.IntVar(&r.burst, "kube-api-burst", 300,
		"The maximum burst queries-per-second of requests sent to the Kubernetes API.")
}

// limit limits the requests of a configuration.
func (r *requests) limit(config *rest.Config) {
	config.QPS, config.Burst = r.qps, r.burst

	if enabled, err := flowcontrol.IsEnabled(context.Background(), config); err == nil && enabled {
		config.QPS, config.Burst = -1, -1 // no limit
	}
}

// newManager returns the manager.
func (f *flags) newManager(options ctrl.Options) (ctrl.Manager, error) {
	config := ctrl.GetConfigOrDie()
	f.requests.limit(config)
	f.election.configure(&options)

	return ctrl.NewManager(config, options)
}
