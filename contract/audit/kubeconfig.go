package audit

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/capstan-project/capstan/contract"
)

// kubeconfigSection is the section of the contract about kubeconfig Secrets.
const kubeconfigSection = controlPlaneContract + "#cluster-kubeconfig-management"

// The limits of client certificates in kubeconfigs. kubeadm's are valid for a year, and renewed after half
// of it.
const (
	longestValidity  = 366 * 24 * time.Hour
	shortestValidity = 7 * 24 * time.Hour
)

// kubeconfigRules are about the kubeconfig Secret of a Cluster whose control plane is initialized.
var kubeconfigRules = []rule{
	{
		Name:        "kubeconfig/exists",
		Level:       contract.Error,
		Contract:    kubeconfigSection,
		Requirement: "The Secret <cluster>-kubeconfig exists in the Cluster's namespace.",
		Why:         "Cluster API's core cannot access the workload cluster, and Machines do not get their Nodes.",
		Remedy:      "Check the log of the control plane provider, which creates the Secret again.",
		Check: func(g *graph, report reporter) {
			for _, c := range g.controlPlanes() {
				if c.kubeconfig == nil {
					at := place{Kind: "Secret", Object: kubeconfigName(c.object).String(), Providers: []string{c.provider}}
					report(at, "does not exist, but the control plane of %s is initialized", c)
				}
			}
		},
	},
	{
		Name:        "kubeconfig/type",
		Level:       contract.Error,
		Contract:    kubeconfigSection,
		Requirement: "The kubeconfig Secret has the type cluster.x-k8s.io/secret.",
		Why:         "Controllers and tools that select Secrets by type ignore it.",
		Remedy:      "Delete the Secret, so that the provider creates it again; a type cannot be changed.",
		Check: eachKubeconfig(func(c initializedCluster, s *Secret, report reporter) {
			if s.Type != string(clusterv1.ClusterSecretType) {
				report(s.place(c.provider), "has the type %s instead of %s", quote(s.Type), clusterv1.ClusterSecretType)
			}
		}),
	},
	{
		Name:        "kubeconfig/cluster-name",
		Level:       contract.Error,
		Contract:    kubeconfigSection,
		Requirement: "The kubeconfig Secret has the label cluster.x-k8s.io/cluster-name.",
		Why:         "Cluster API's managers cache only Secrets with this label, and do not find the kubeconfig.",
		Remedy:      "Set the label when the Secret is created, and check it in each reconcile.",
		Check: eachKubeconfig(func(c initializedCluster, s *Secret, report reporter) {
			checkClusterName(s.place(c.provider), s.Labels, c.GetName(), report)
		}),
	},
	{
		Name:        "kubeconfig/content",
		Level:       contract.Error,
		Contract:    kubeconfigSection,
		Requirement: "The kubeconfig Secret has a kubeconfig in the key value.",
		Why:         "Cluster API's core cannot access the workload cluster.",
		Remedy:      "Write a kubeconfig with a current context, its cluster and its user into the key.",
		Check: eachKubeconfig(func(c initializedCluster, s *Secret, report reporter) {
			if !s.IsKubeconfig {
				report(s.place(c.provider), "has no kubeconfig in the key %s; its keys are %s", secretKey, list(s.Keys))
			}
		}),
	},
	{
		Name:        "kubeconfig/owner",
		Level:       contract.Warning,
		Contract:    ownerReferencesPage,
		Requirement: "The Cluster or its control plane owns the kubeconfig Secret.",
		Why:         "It remains when the Cluster is deleted, and is used for the next one of the same name.",
		Remedy:      "Set an owner reference to the control plane when the Secret is created.",
		Check: eachKubeconfig(func(c initializedCluster, s *Secret, report reporter) {
			if owned, _ := s.isOwnedBy(c.object, c.controlPlane); !owned {
				report(s.place(c.provider), "is owned neither by %s nor by %s", c, c.controlPlane)
			}
		}),
	},
	{
		Name:        "kubeconfig/expired",
		Level:       contract.Error,
		Contract:    kubeconfigSection,
		Requirement: "The client certificate is valid.",
		Why:         "Cluster API's core cannot access the workload cluster.",
		Remedy:      "Delete the Secret, so that the provider creates it again, and find out why it did not renew it.",
		Check: eachKubeconfig(func(c initializedCluster, s *Secret, report reporter) {
			if !s.ClientExpiry.IsZero() && s.ClientExpiry.Before(c.now) {
				report(s.place(c.provider), "has a client certificate that expired at %s", timeText(s.ClientExpiry))
			}
		}),
	},
	{
		Name:        "kubeconfig/rotation",
		Level:       contract.Warning,
		Contract:    kubeconfigSection,
		Requirement: "The client certificate is short-lived, and renewed in time.",
		Why:         "A certificate cannot be revoked, and without renewal core loses access to the workload cluster.",
		Remedy:      "Issue certificates for at most a year, and renew them after half of the time.",
		Check: eachKubeconfig(func(c initializedCluster, s *Secret, report reporter) {
			remaining := s.ClientExpiry.Sub(c.now)
			unusual := remaining > longestValidity || remaining > 0 && remaining < shortestValidity

			if !s.ClientExpiry.IsZero() && unusual {
				report(s.place(c.provider), "has a client certificate that expires at %s", timeText(s.ClientExpiry))
			}
		}),
	},
}

// kubeconfigName returns the name of the kubeconfig Secret of a Cluster.
func kubeconfigName(cluster *object) types.NamespacedName {
	return types.NamespacedName{
		Namespace: cluster.GetNamespace(),
		Name:      secret.Name(cluster.GetName(), secret.Kubeconfig),
	}
}

// initializedCluster is a Cluster whose control plane is initialized.
type initializedCluster struct {
	*object

	controlPlane *object
	// provider is the label of the control plane's provider.
	provider string
	// kubeconfig is nil if it does not exist.
	kubeconfig *Secret
	now        time.Time
}

// controlPlanes returns the Clusters whose control plane is initialized, and none if Secrets were not read.
func (g *graph) controlPlanes() []initializedCluster {
	if g.unread[SecretsName] {
		return nil
	}

	var found []initializedCluster

	for _, l := range g.linked(controlPlane) {
		if !l.from.is(clusterv1.ClusterKind) || !isInitialized(l) || !l.from.GetDeletionTimestamp().IsZero() {
			continue
		}

		found = append(found, initializedCluster{
			object:       l.from,
			controlPlane: l.target,
			provider:     l.target.kind.provider,
			kubeconfig:   g.secrets[kubeconfigName(l.from)],
			now:          g.snapshot.Time,
		})
	}

	return found
}

// eachKubeconfig returns a check of all kubeconfig Secrets that exist.
func eachKubeconfig(check func(initializedCluster, *Secret, reporter)) func(*graph, reporter) {
	return func(g *graph, report reporter) {
		for _, c := range g.controlPlanes() {
			if c.kubeconfig != nil {
				check(c, c.kubeconfig, report)
			}
		}
	}
}
