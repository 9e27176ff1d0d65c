package main

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/inventory"
)

// crdTimeout limits how long the API server may take to serve the operator's own CRDs.
const crdTimeout = time.Minute

// prepareCRDs upgrades the operator's own CRDs, if that is wanted, and waits until they are served. It runs
// before the manager starts, so it cannot use the manager's cache.
func prepareCRDs(ctx context.Context, mgr ctrl.Manager, upgrade bool) error {
	live, err := controllers.NewUncachedClient(mgr)
	if err != nil {
		return err
	}

	if upgrade {
		if err := upgradeCRDs(ctx, live, version); err != nil {
			return err
		}
	}

	return awaitCRDs(ctx, live, crdTimeout)
}

// prepareInventory installs the CRD of clusterctl's inventory. Providers do not need it, so a problem is only logged.
func prepareInventory(ctx context.Context, mgr ctrl.Manager) {
	live, err := controllers.NewUncachedClient(mgr)
	if err == nil {
		err = inventory.CreateDefinition(ctx, live)
	}

	if err != nil {
		ctrl.Log.Info("Cannot install the CustomResourceDefinition of clusterctl's inventory, which is kept as soon as it "+
			"exists; clusterctl installs it too", "problem", err.Error())
	}
}
