package setup

import (
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/chartutil"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/discovery"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// check makes sure that a plan can be carried out in a cluster, before the first part of it is: the API server must not
// be too old for the operator. What the user may not do is a warning, because not all of it may be needed.
func (o *options) check(ctx context.Context, cluster *cli.Cluster, p *setupPlan) error {
	if p.operator != nil {
		if err := p.operator.supports(cluster); err != nil {
			return err
		}
	}

	everything := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
	}}
	if err := cluster.Client.Create(ctx, everything); err != nil {
		return fmt.Errorf("ask the API server for your permissions: %w", err)
	}

	if !everything.Status.Allowed {
		o.Warnf("the API server may refuse a part of the installation, which usually needs the ClusterRole cluster-admin: " +
			"you may not do everything in the cluster")
	}

	return nil
}

// supports returns an error if the operator's chart cannot be installed with the version of an API server.
func (op *operator) supports(cluster *cli.Cluster) error {
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		return err
	}

	server, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the API server for its version: %w", err)
	}

	if wanted := op.chart.Metadata.KubeVersion; !chartutil.IsCompatibleRange(wanted, server.GitVersion) {
		return fmt.Errorf("nothing was changed: the operator needs Kubernetes %s, and the API server has %s; upgrade it, or "+
			"select another cluster with --kubeconfig or --context", wanted, server.GitVersion)
	}

	return nil
}
