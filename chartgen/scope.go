package chartgen

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// kubernetesGroups are the API groups that Kubernetes serves itself.
var kubernetesGroups = map[string]bool{
	"": true, "apps": true, "autoscaling": true, "batch": true, "extensions": true, "policy": true,
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
	"authentication.k8s.io": true, "authorization.k8s.io": true, "certificates.k8s.io": true, "coordination.k8s.io": true,
	"discovery.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "networking.k8s.io": true,
	"node.k8s.io": true, "rbac.authorization.k8s.io": true, "resource.k8s.io": true, "scheduling.k8s.io": true,
	"storage.k8s.io": true, "storagemigration.k8s.io": true,
}

// clusterScoped are the kinds without a namespace, of Kubernetes and of the projects that provider
// components use. clusterctl knows sixteen of them by kind alone and puts all others into the
// namespace.
var clusterScoped = map[string][]string{
	"": {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"cert-manager.io":              {"ClusterIssuer"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"gateway.networking.k8s.io":    {"GatewayClass"},
	"networking.k8s.io":            {"IngressClass", "IPAddress", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"policy":                       {"PodSecurityPolicy"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "ResourceSlice", "DeviceTaintRule"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"snapshot.storage.k8s.io":      {"VolumeSnapshotClass", "VolumeSnapshotContent"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
	"trust.cert-manager.io":        {"Bundle"},
}

// scopes knows the kinds that the bundle's own CRDs define, and whether they are namespaced.
type scopes map[schema.GroupKind]bool

func newScopes(components *bundle.Components) scopes {
	s := scopes{}

	for i := range components.Documents {
		doc := &components.Documents[i]
		if !doc.IsCRD() {
			continue
		}

		group, _, _ := unstructured.NestedString(doc.Object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(doc.Object.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(doc.Object.Object, "spec", "scope")
		s[schema.GroupKind{Group: group, Kind: kind}] = scope != "Cluster"
	}

	return s
}

// namespaced reports whether objects of the kind live in a namespace. A kind that nobody knows is
// taken to: the API server drops the namespace of a cluster-scoped object.
func (s scopes) namespaced(kind schema.GroupKind) bool {
	if namespaced, known := s[kind]; known {
		return namespaced
	}

	return !slices.Contains(clusterScoped[kind.Group], kind.Kind)
}

// requiredKinds lists the kinds that the objects need from others, sorted.
func requiredKinds(components *bundle.Components) []string {
	own := map[string]bool{}
	for kind := range newScopes(components) {
		own[kind.Group] = true
	}

	var kinds []string

	for i := range components.Documents {
		gvk := components.Documents[i].Object.GroupVersionKind()
		if !kubernetesGroups[gvk.Group] && !own[gvk.Group] {
			kinds = append(kinds, fmt.Sprintf("%s.%s.%s", gvk.Kind, gvk.Version, gvk.Group))
		}
	}

	slices.Sort(kinds)

	return slices.Compact(kinds)
}
