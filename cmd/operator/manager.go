package main

import (
	"github.com/fluxcd/pkg/runtime/client"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/controllers"
)

// newManager returns the manager. Its client, and all that the controllers derive from it, end with the lease of the
// leader.
func (f *flags) newManager(settings *controllers.Options, options ctrl.Options) (ctrl.Manager, error) {
	config := client.GetConfigOrDie(f.client)

	if err := f.election.configure(&options, config, settings.Holder); err != nil {
		return nil, err
	}

	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}

	f.election.recorder.EventRecorder = mgr.GetEventRecorder("leader-election")

	return mgr, nil
}
