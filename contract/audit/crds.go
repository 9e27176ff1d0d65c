package audit

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// crdTasks are the pages about CRDs in the documentation of Kubernetes.
const crdTasks = "https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/"

// crdRules are about CRDs as they are in the cluster.
var crdRules = []rule{
	{
		Name:        "crd/established",
		Level:       contract.Error,
		Contract:    crdTasks + "custom-resource-definitions/",
		Requirement: "A CRD is Established, its names are accepted, and it is not deleted.",
		Why:         "The API server does not serve the kind, or is deleting all of its objects.",
		Remedy:      "Read the conditions of the CRD, and resolve the conflict or the finalizer that they name.",
		Check:       eachKind(checkEstablished),
	},
	{
		Name:        "crd/labels",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#labels",
		Requirement: "A provider's CRD has the labels clusterctl.cluster.x-k8s.io and cluster.x-k8s.io/provider.",
		Why:         "`clusterctl move` leaves all objects of the kind behind.",
		Remedy:      "Install the provider with Capstan or clusterctl, which set the labels, or set them again.",
		Check:       eachKind(checkLabels),
	},
	{
		Name:        "crd/contract-versions",
		Level:       contract.Error,
		Contract:    infraClusterContract + "#all-resources-version",
		Requirement: "The newest version in a CRD's label for core's contract is served.",
		Why:         "Cluster API's core cannot read the objects that Clusters and Machines refer to.",
		Remedy:      "Set the label of the contract to the versions that implement it, separated by underscores.",
		Check:       checkContractVersions,
	},
	{
		Name:        "crd/stored-versions",
		Level:       contract.Warning,
		Contract:    crdTasks + "custom-resource-definition-versioning/",
		Requirement: "A CRD's status.storedVersions lists only its storage version.",
		Why:         "A provider's version that drops another stored version cannot be installed.",
		Remedy:      "Let Capstan migrate the objects, or use a storage version migration.",
		Check:       eachKind(checkStoredVersions),
	},
	{
		Name:        "crd/conversion",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#components-yaml",
		Requirement: "A CRD with a conversion webhook has its certificate authority.",
		Why:         "Objects cannot be converted, so requests for all but the stored version fail.",
		Remedy:      "Read the status of the provider's Certificate, and the log of cert-manager's cainjector.",
		Check:       eachKind(checkConversion),
	},
}

// eachKind returns a check of all kinds.
func eachKind(check func(*kind, reporter)) func(*graph, reporter) {
	return func(g *graph, report reporter) {
		for _, k := range g.kinds {
			check(k, report)
		}
	}
}

func checkEstablished(k *kind, report reporter) {
	required := []apiextensionsv1.CustomResourceDefinitionConditionType{
		apiextensionsv1.Established,
		apiextensionsv1.NamesAccepted,
	}
	for _, c := range k.crd.Status.Conditions {
		if slices.Contains(required, c.Type) && c.Status != apiextensionsv1.ConditionTrue {
			report(k.place(), "has the condition %s=%s with reason %s", c.Type, c.Status, quote(c.Reason))
		}
	}

	if !k.crd.DeletionTimestamp.IsZero() {
		report(k.place(), "is being deleted, and blocked by its finalizers %s", list(k.crd.Finalizers))
	}
}

func checkLabels(k *kind, report reporter) {
	if k.additional {
		return
	}

	if _, ok := k.crd.Labels[v1alpha2.ClusterctlLabel]; !ok {
		report(k.place(), "lacks the label %s", v1alpha2.ClusterctlLabel)
	}

	if k.provider == "" {
		report(k.place(), "lacks the label %s", v1alpha2.ClusterctlProviderLabel)
	}
}

func checkContractVersions(g *graph, report reporter) {
	for _, k := range g.kinds {
		if k.contract == "" {
			continue
		}

		if v := versions.Find(k.crd, k.version); v == nil || !v.Served {
			report(k.place(), "has the label %s for version %s, which it does not serve",
				contract.LabelPrefix+k.contract, quote(k.version))
		}
	}

	referenced := map[schema.GroupKind]bool{}

	for _, l := range g.linked(infraCluster, controlPlane, infraMachine, infraPool, bootstrapConfig) {
		k := l.target.kind
		if k.contract == "" && !referenced[k.GroupKind] {
			report(k.place(), "has no label for a contract of core, and %s refers to one of its objects", l.from)
		}

		referenced[k.GroupKind] = true
	}
}

func checkStoredVersions(k *kind, report reporter) {
	storage := versions.StorageName(k.crd)

	others := slices.DeleteFunc(slices.Clone(k.crd.Status.StoredVersions), func(v string) bool { return v == storage })
	if len(others) > 0 {
		report(k.place(), "may have objects that are stored in %s instead of %s", list(others), storage)
	}
}

func checkConversion(k *kind, report reporter) {
	conversion := k.crd.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook == nil {
		return
	}

	if c := conversion.Webhook.ClientConfig; c != nil && len(c.CABundle) == 0 {
		report(k.place(), "has a conversion webhook without a certificate authority")
	}
}

// list joins names; "none" if there are none.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}

	return strings.Join(names, ", ")
}
