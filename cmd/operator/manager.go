package main

import (
	"context"

	"github.com/fluxcd/cli-utils/pkg/flowcontrol"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	clientflowcontrol "k8s.io/client-go/util/flowcontrol"
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

// limit limits the requests of all clients of a configuration together.
func (r *requests) limit(config *rest.Config) {
	config.QPS = -1 // each client would have a limit of its own

	if enabled, err := flowcontrol.IsEnabled(context.Background(), config); err == nil && enabled || r.qps <= 0 {
		return
	}

	config.RateLimiter = clientflowcontrol.NewTokenBucketRateLimiter(r.qps, r.burst)
}

// newManager returns the manager.
func (f *flags) newManager(options ctrl.Options) (ctrl.Manager, error) {
	config := ctrl.GetConfigOrDie()
	options.LeaderElectionConfig = rest.CopyConfig(config) // its requests wait for no others
	f.requests.limit(config)
	f.election.configure(&options)

	return ctrl.NewManager(config, options)
}
