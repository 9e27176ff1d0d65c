package cli

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers"
)

// StoppedOperator says that no operator runs, by the lease that it renews. It is empty if one does, or if that is not
// known: there is no lease, or the user may not read it.
func (c *Cluster) StoppedOperator(ctx context.Context) string {
	leases := &coordinationv1.LeaseList{}
	named := client.MatchingFields{"metadata.name": controllers.LeaseName}

	if err := c.Client.List(ctx, leases, named); err != nil {
		return ""
	}

	return stopped(leases.Items, time.Now())
}

// stopped says that none of the leases is held any more.
func stopped(leases []coordinationv1.Lease, now time.Time) string {
	text := ""

	for _, lease := range leases {
		age := now.Sub(ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time)
		valid := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second

		if ptr.Deref(lease.Spec.HolderIdentity, "") != "" && age <= valid {
			return ""
		}

		text = fmt.Sprintf("no operator has renewed its lease for %s, so nothing is reconciled; see "+
			"`kubectl get pods -n %s`", duration.HumanDuration(age), lease.Namespace)
	}

	return text
}
