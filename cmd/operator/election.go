package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// electionID is the name of the lease.
const electionID = "capstan.operator.cluster.x-k8s.io"

// namespaceFile has the namespace of the pod that the operator runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// election is the leader election of the operator.
type election struct {
	leaderelection.Options
	// Namespace of the lease; empty for that of the operator's pod.
	Namespace string

	recorder lateRecorder
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

// configure adds the election, if there is one, to the options of the manager of a configuration. The
// configuration's connections, but not those of the election itself, are useless once the lease is lost.
func (e *election) configure(options *ctrl.Options, config *rest.Config, identity string) error {
	if !e.Enable {
		return nil
	}

	lease, err := e.newLease(config, identity)
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}

	config.Dial = lease.dial

	options.LeaderElection = true
	options.LeaderElectionResourceLockInterface = lease
	options.LeaderElectionReleaseOnCancel = e.ReleaseOnCancel
	options.LeaseDuration = &e.LeaseDuration
	options.RenewDeadline = &e.RenewDeadline
	options.RetryPeriod = &e.RetryPeriod

	return nil
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

// newLease returns the lock of the election. The operator exits when the lease is lost, or older than
// before: another process may lead then, and what this one knows is outdated.
func (e *election) newLease(config *rest.Config, identity string) (*lease, error) {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, e.namespace(), electionID,
		resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: &e.recorder},
		rest.CopyConfig(config), e.RenewDeadline)
	if err != nil {
		return nil, err
	}

	lost := func(reason error) {
		ctrl.Log.Error(reason, "exiting", "lease", lock.Describe())
		os.Exit(1)
	}

	return &lease{Interface: lock, lost: lost}, nil
}

// lateRecorder records the events of the election with the recorder of the manager, which is created after
// the lock.
type lateRecorder struct{ events.EventRecorder }

// Eventf records an event.
func (r *lateRecorder) Eventf(o runtime.Object, kind, reason, message string, args ...any) {
	r.EventRecorder.Eventf(o, nil, kind, reason, "Elect", message, args...)
}
