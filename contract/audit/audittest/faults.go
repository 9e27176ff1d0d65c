package audittest

import (
	"path"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Edit changes the fields of an object.
type Edit func(fields map[string]any)

// Fault is something that is wrong with one object of the sample.
type Fault struct {
	// Rule is the rule that finds the fault, and Kind and Object are where.
	Rule, Kind, Object string
	// Of are the kind and name of the object that is changed, if it is another one.
	Of [2]string
	// Edit makes the change. It is nil if the object is deleted instead.
	Edit Edit
	// Blocked means that a finalizer blocks the deletion.
	Blocked bool
	// Volatile means that an API server or its controllers correct the fault at once.
	Volatile bool
}

// Target returns the kind and name of the object that is changed.
func (f Fault) Target() (kind, name string) {
	if f.Of[0] != "" {
		return f.Of[0], f.Of[1]
	}

	return f.Kind, path.Base(f.Object)
}

// The names of objects in the sample that have faults.
const (
	crdKind    = "CustomResourceDefinition"
	diskCRD    = "exampledisks.infrastructure.cluster.x-k8s.io"
	machineCRD = "examplemachines.infrastructure.cluster.x-k8s.io"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// Faults returns at least one fault for each rule.
func Faults() []Fault {
	return slices.Concat(crdFaults, referenceFaults, ownerFaults, moveFaults, statusFaults, secretFaults)
}

var crdFaults = []Fault{
	{Rule: "crd/established", Kind: crdKind, Object: diskCRD, Volatile: true,
		Edit: set([]any{map[string]any{"type": "NamesAccepted", "status": "False"}}, "status", "conditions")},
	{Rule: "crd/labels", Kind: crdKind, Object: diskCRD, Edit: unset("metadata", "labels", "clusterctl.cluster.x-k8s.io")},
	{Rule: "crd/labels", Kind: crdKind, Object: diskCRD, Edit: unset("metadata", "labels", "cluster.x-k8s.io/provider")},
	{Rule: "crd/contract-versions", Kind: crdKind, Object: diskCRD,
		Edit: set("v9", "metadata", "labels", "cluster.x-k8s.io/v1beta2")},
	{Rule: "crd/contract-versions", Kind: crdKind, Object: "legacyclusters.infrastructure.cluster.x-k8s.io",
		Edit: unset("metadata", "labels", "cluster.x-k8s.io/v1beta1")},
	{Rule: "crd/stored-versions", Kind: crdKind, Object: machineCRD,
		Edit: set([]any{"v1beta1", "v1beta2"}, "status", "storedVersions")},
	{Rule: "crd/conversion", Kind: crdKind, Object: machineCRD,
		Edit: unset("spec", "conversion", "webhook", "clientConfig", "caBundle")},
	{Rule: "webhooks/ca", Kind: "ValidatingWebhookConfiguration", Object: "example",
		Edit: func(fields map[string]any) { fields["webhooks"] = webhooks("") }},
}

var referenceFaults = []Fault{
	{Rule: "references/exist", Kind: "Machine", Object: "default/legacy-a",
		Edit: set("gone", "spec", "infrastructureRef", "name")},
	{Rule: "references/namespace", Kind: "ExampleControlPlane", Object: "default/one",
		Edit: set("other", "spec", "machineTemplate", "spec", "infrastructureRef", "namespace")},
	{Rule: "references/cluster-name", Kind: "ExampleMachine", Object: "default/one-a",
		Edit: unset("metadata", "labels", "cluster.x-k8s.io/cluster-name")},
	{Rule: "references/cluster-name", Kind: "ExampleConfig", Object: "default/one-a",
		Edit: set("other", "metadata", "labels", "cluster.x-k8s.io/cluster-name")},
}

var ownerFaults = []Fault{
	{Rule: "owners/referenced", Kind: "ExampleCluster", Object: "default/one", Edit: unset("metadata", "ownerReferences")},
	{Rule: "owners/referenced", Kind: "LegacyMachine", Object: "default/legacy-a", Edit: owner("controller", false)},
	{Rule: "owners/chain", Kind: "ExampleDisk", Object: "default/one-a", Edit: unset("metadata", "ownerReferences")},
	{Rule: "owners/exist", Kind: "ExampleDisk", Object: "default/one-a", Edit: addOwner, Volatile: true},
	{Rule: "owners/api-version", Kind: "ExampleDisk", Object: "default/one-a",
		Edit: owner("apiVersion", "infrastructure.cluster.x-k8s.io/v1alpha4")},
}

var moveFaults = []Fault{
	{Rule: "move/blocked", Kind: "ExampleCluster", Object: "default/paused", Edit: annotate("block-move")},
	{Rule: "move/interrupted", Kind: "ExampleDisk", Object: "default/one-a", Edit: annotate("delete-for-move")},
	{Rule: "move/cluster-scoped", Kind: "ExampleIdentity", Object: "shared",
		Of:   [2]string{crdKind, "exampleidentities.infrastructure.cluster.x-k8s.io"},
		Edit: unset("metadata", "labels", "clusterctl.cluster.x-k8s.io/move-hierarchy")},
	{Rule: "pausing/condition", Kind: "ExampleCluster", Object: "default/paused",
		Edit: conditions("Paused", "False")},
	{Rule: "pausing/condition", Kind: "ExampleCluster", Object: "default/one",
		Edit: conditions("Ready", "True", "Paused", "True")},
	{Rule: "pausing/respected", Kind: "ExampleCluster", Object: "default/paused", Edit: changeLater, Volatile: true},
}

var statusFaults = []Fault{
	{Rule: "conditions/format", Kind: "ExampleCluster", Object: "default/one", Edit: conditions("Ready", "Maybe")},
	{Rule: "conditions/format", Kind: "ExampleCluster", Object: "default/one",
		Edit: conditions("Ready", "True", "Ready", "True")},
	{Rule: "conditions/summary", Kind: "ExampleControlPlane", Object: "default/one", Edit: conditions("Ready", "True")},
	{Rule: "status/initialization", Kind: "ExampleMachine", Object: "default/one-a",
		Edit: set(map[string]any{"ready": true}, "status")},
	{Rule: "status/initialization", Kind: "LegacyMachine", Object: "default/legacy-a",
		Edit: set("yes", "status", "ready")},
	{Rule: "status/provider-id", Kind: "ExampleMachine", Object: "default/one-a", Edit: unset("spec", "providerID")},
	{Rule: "status/provider-id", Kind: "ExampleMachine", Object: "default/one-a",
		Of:   [2]string{"LegacyMachine", "legacy-a"},
		Edit: set("example://one-a", "spec", "providerID")},
	{Rule: "status/endpoint", Kind: "ExampleCluster", Object: "default/one",
		Edit: set(int64(443), "spec", "controlPlaneEndpoint", "port")},
	{Rule: "status/endpoint", Kind: "Cluster", Object: "default/one", Edit: unset("spec", "controlPlaneEndpoint")},
	{Rule: "status/kubernetes-version", Kind: "ExampleControlPlane", Object: "default/one",
		Edit: set("1.36.0", "spec", "version")},
	{Rule: "status/control-plane-components", Kind: "Machine", Object: "default/one-a",
		Edit: conditions("APIServerPodHealthy", "True", "EtcdPodHealthy", "False")},
	{Rule: "status/deletion", Kind: "ExampleDisk", Object: "default/one-a", Blocked: true},
}

var secretFaults = []Fault{
	{Rule: "kubeconfig/exists", Kind: "Secret", Object: "default/one-kubeconfig"},
	{Rule: "kubeconfig/type", Kind: "Secret", Object: "default/one-kubeconfig", Edit: set("Opaque", "type")},
	{Rule: "kubeconfig/cluster-name", Kind: "Secret", Object: "default/one-kubeconfig", Edit: unset("metadata", "labels")},
	{Rule: "kubeconfig/content", Kind: "Secret", Object: "default/one-kubeconfig",
		Edit: set(map[string]any{"kubeconfig": "c2VjcmV0LXRva2Vu"}, "data")},
	{Rule: "kubeconfig/content", Kind: "Secret", Object: "default/one-kubeconfig",
		Edit: set(map[string]any{"value": "c2VjcmV0LXRva2Vu"}, "data")},
	{Rule: "kubeconfig/owner", Kind: "Secret", Object: "default/one-kubeconfig",
		Edit: unset("metadata", "ownerReferences")},
	{Rule: "kubeconfig/expired", Kind: "Secret", Object: "default/one-kubeconfig", Edit: setKubeconfig(-day)},
	{Rule: "kubeconfig/rotation", Kind: "Secret", Object: "default/one-kubeconfig", Edit: setKubeconfig(10 * year)},
	{Rule: "kubeconfig/rotation", Kind: "Secret", Object: "default/one-kubeconfig", Edit: setKubeconfig(day)},
	{Rule: "bootstrap/data-secret", Kind: "Secret", Object: "default/one-a"},
	{Rule: "bootstrap/data-secret", Kind: "Secret", Object: "default/one-a",
		Edit: set(map[string]any{"userdata": "c2VjcmV0LXRva2Vu"}, "data")},
	{Rule: "bootstrap/data-secret-owner", Kind: "Secret", Object: "default/one-a", Edit: owner("controller", false)},
	{Rule: "bootstrap/data-secret-cluster-name", Kind: "Secret", Object: "default/one-a",
		Edit: unset("metadata", "labels")},
	{Rule: "certificates/cluster-name", Kind: "Secret", Object: "default/one-ca", Edit: unset("metadata", "labels")},
}

func set(value any, field ...string) Edit {
	return func(fields map[string]any) {
		if err := unstructured.SetNestedField(fields, value, field...); err != nil {
			panic(err) // the sample has another type there: a mistake in this file
		}
	}
}

func unset(field ...string) Edit {
	return func(fields map[string]any) { unstructured.RemoveNestedField(fields, field...) }
}

// annotate sets an annotation of clusterctl.
func annotate(name string) Edit {
	return set("", "metadata", "annotations", "clusterctl.cluster.x-k8s.io/"+name)
}

// owner sets a field of the owner reference.
func owner(field string, value any) Edit {
	return func(fields map[string]any) {
		owners, _, _ := unstructured.NestedSlice(fields, "metadata", "ownerReferences")
		owners[0].(map[string]any)[field] = value
		set(owners, "metadata", "ownerReferences")(fields)
	}
}

// addOwner adds an owner that was deleted.
func addOwner(fields map[string]any) {
	owners, _, _ := unstructured.NestedSlice(fields, "metadata", "ownerReferences")
	owners = append(owners, map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "gone", "uid": "gone",
	})
	set(owners, "metadata", "ownerReferences")(fields)
}

// conditions replaces the conditions: pairs of type and status.
func conditions(typesAndStatuses ...string) Edit {
	var items []any

	for pair := range slices.Chunk(typesAndStatuses, 2) {
		items = append(items, map[string]any{
			"type": pair[0], "status": pair[1], "reason": "Example", "lastTransitionTime": "2026-01-01T00:00:00Z",
		})
	}

	return set(items, "status", "conditions")
}

// changeLater records that a controller changed the object after its Cluster was paused.
func changeLater(fields map[string]any) {
	set("2026-01-01T00:00:00Z", "metadata", "creationTimestamp")(fields)
	set([]any{map[string]any{
		"manager": "example-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-01-03T00:00:00Z",
	}}, "metadata", "managedFields")(fields)
}
