package audit

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/capstan-project/capstan/contract"
)

// dataSecretSection is the section of the contract about Secrets with bootstrap data.
const dataSecretSection = bootstrapConfigContract + "#bootstrapconfig-data-secret"

// secretRules are about the other Secrets of workload clusters: bootstrap data and certificates.
var secretRules = []rule{
	{
		Name:        "bootstrap/data-secret",
		Level:       contract.Error,
		Contract:    dataSecretSection,
		Requirement: "The Secret with bootstrap data exists, with the key value.",
		Why:         "No machine can be created with this configuration.",
		Remedy:      "Check the log of the bootstrap provider, and let it create the Secret again.",
		Check: eachDataSecret(func(l link, at place, s *Secret, report reporter) {
			switch {
			case s == nil:
				report(at, "does not exist, but %s reports it in status.dataSecretName", l.target)
			case !slices.Contains(s.Keys, secretKey):
				report(at, "has no key %s; its keys are %s", secretKey, list(s.Keys))
			}
		}),
	},
	{
		Name:        "bootstrap/data-secret-owner",
		Level:       contract.Error,
		Contract:    dataSecretSection,
		Requirement: "The bootstrap configuration controls the Secret with bootstrap data.",
		Why:         "`clusterctl move` leaves the Secret behind, and it remains when the machine is deleted.",
		Remedy:      "Set the owner reference with controller: true when the Secret is created.",
		Check: eachDataSecret(func(l link, at place, s *Secret, report reporter) {
			if s == nil {
				return
			}

			if _, controlled := s.isOwnedBy(l.target); !controlled {
				report(at, "is not controlled by %s", l.target)
			}
		}),
	},
	{
		Name:        "bootstrap/data-secret-cluster-name",
		Level:       contract.Error,
		Contract:    dataSecretSection,
		Requirement: "The Secret with bootstrap data has the label cluster.x-k8s.io/cluster-name.",
		Why:         "Cluster API's managers cache only Secrets with this label.",
		Remedy:      "Set the label when the Secret is created.",
		Check: eachDataSecret(func(l link, at place, s *Secret, report reporter) {
			if s != nil {
				checkClusterName(at, s.Labels, l.from.text("spec", "clusterName"), report)
			}
		}),
	},
	{
		Name:        "certificates/cluster-name",
		Level:       contract.Error,
		Contract:    controlPlaneContract + "#cluster-certificate-management",
		Requirement: "A Secret with a certificate of a Cluster has the label cluster.x-k8s.io/cluster-name.",
		Why:         "Cluster API's managers cache only Secrets with this label, and create another certificate.",
		Remedy:      "Set the label when the Secret is created.",
		Check:       checkCertificates,
	},
}

// expectedSecrets returns the names of the kubeconfig Secrets and of those with bootstrap data that must exist
// according to the CRDs and objects of a snapshot.
func expectedSecrets(s *Snapshot) []types.NamespacedName {
	g := newGraph(s, Options{})
	clusters, data := g.controlPlanes(), g.dataSecrets()
	names := make([]types.NamespacedName, 0, len(clusters)+len(data))

	for _, c := range clusters {
		names = append(names, kubeconfigName(c.object))
	}

	for _, l := range data {
		names = append(names, l.secret)
	}

	return names
}

// dataSecret is the reference of a bootstrap configuration to the Secret with its data.
type dataSecret struct {
	link

	secret types.NamespacedName
}

// dataSecrets returns the references to Secrets with bootstrap data, and none if Secrets were not read.
func (g *graph) dataSecrets() []dataSecret {
	if g.unread[SecretsName] {
		return nil
	}

	var found []dataSecret

	for _, l := range g.linked(bootstrapConfig) {
		name := l.target.text("status", "dataSecretName")
		if name != "" && isInitialized(l) && l.target.GetDeletionTimestamp().IsZero() {
			found = append(found, dataSecret{l, types.NamespacedName{Namespace: l.target.GetNamespace(), Name: name}})
		}
	}

	return found
}

// eachDataSecret returns a check of all Secrets that bootstrap configurations report. The Secret is nil if it
// does not exist.
func eachDataSecret(check func(link, place, *Secret, reporter)) func(*graph, reporter) {
	return func(g *graph, report reporter) {
		for _, l := range g.dataSecrets() {
			at := place{Kind: "Secret", Object: l.secret.String(), Providers: []string{l.target.kind.provider}}
			check(l.link, at, g.secrets[l.secret], report)
		}
	}
}

// certificates are the purposes of Secrets with certificates, which are part of their names.
var certificates = []secret.Purpose{secret.ClusterCA, secret.EtcdCA, secret.FrontProxyCA, secret.ServiceAccount}

func checkCertificates(g *graph, report reporter) {
	for _, c := range g.controlPlanes() {
		for _, purpose := range certificates {
			s := g.secrets[types.NamespacedName{
				Namespace: c.GetNamespace(), Name: secret.Name(c.GetName(), purpose),
			}]
			if s != nil && s.Type == string(clusterv1.ClusterSecretType) {
				checkClusterName(s.place(c.provider), s.Labels, c.GetName(), report)
			}
		}
	}
}
