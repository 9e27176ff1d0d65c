package main

import (
	"cmp"
	"os"
	"strings"

	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/controllers"
)

// namespaceFile has the namespace of the pod that the operator runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// election is the leader election of the operator.
type election struct {
	leaderelection.Options
	// Namespace of the lease; empty for that of the operator's pod.
	Namespace string
}

func (e *election) bindFlags(set *pflag.FlagSet) {
	e.BindFlags(set)
	set.StringVar(
		&e.Namespace,
		"leader-election-namespace",
		"",
		"Namespace of the lease, and outside of a pod also of what the operator stores. Default: that of the "+
			"operator's pod.",
	)
}

// configure adds the election, if there is one, to the options of the manager. That two operators never write the same
// status is ensured by its lock, not by the lease.
func (e *election) configure(options *ctrl.Options) {
	options.LeaderElection = e.Enable
	options.LeaderElectionID = controllers.LeaseName
	options.LeaderElectionNamespace = e.namespace()
	options.LeaderElectionReleaseOnCancel = e.ReleaseOnCancel
	options.LeaseDuration = &e.LeaseDuration
	options.RenewDeadline = &e.RenewDeadline
	options.RetryPeriod = &e.RetryPeriod
}

// namespace returns that of the lease; empty outside of a pod, unless a flag names it.
func (e *election) namespace() string {
	return cmp.Or(e.Namespace, podNamespace())
}

// podNamespace returns the namespace of the pod that the operator runs in; empty outside of a pod.
func podNamespace() string {
	content, _ := os.ReadFile(namespaceFile) // only pods have it

	return strings.TrimSpace(string(content))
}
