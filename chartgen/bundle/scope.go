package bundle

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kubernetesGroups are the API groups that Kubernetes itself serves.
var kubernetesGroups = map[string]bool{
	"": true, "apps": true, "autoscaling": true, "batch": true, "extensions": true, "policy": true,
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
	"authentication.k8s.io": true, "authorization.k8s.io": true, "certificates.k8s.io": true, "coordination.k8s.io": true,
	"discovery.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "networking.k8s.io": true,
	"node.k8s.io": true, "rbac.authorization.k8s.io": true, "resource.k8s.io": true, "scheduling.k8s.io": true,
	"storage.k8s.io": true, "storagemigration.k8s.io": true,
}

// clusterScoped lists the cluster-scoped kinds of Kubernetes and of the projects that provider
// components use, by API group. clusterctl knows only sixteen of them, regardless of the group, and
// sets a namespace on all other objects.
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

// IsKubernetesGroup reports whether Kubernetes itself serves an API group.
func IsKubernetesGroup(group string) bool { return kubernetesGroups[group] }

// Scopes records which kinds the provider's own CRDs define, and whether they are namespaced.
type Scopes map[schema.GroupKind]bool

// Add records the kind that a CRD defines.
func (s Scopes) Add(crd map[string]any) {
	spec := NestedMap(crd, "spec")
	kind := schema.GroupKind{Group: NestedString(spec, "group"), Kind: NestedString(spec, "names", "kind")}
	s[kind] = NestedString(spec, "scope") != "Cluster"
}

// Namespaced reports whether a kind is namespaced. Unknown kinds count as namespaced: if one is
// not, the API server drops the namespace.
func (s Scopes) Namespaced(kind schema.GroupKind) bool {
	if namespaced, known := s[kind]; known {
		return namespaced
	}

	return !slices.Contains(clusterScoped[kind.Group], kind.Kind)
}

// RequiredKinds filters kinds: it returns those in API groups that neither Kubernetes nor the provider's own CRDs
// define, as Kind.version.group, sorted.
func (s Scopes) RequiredKinds(kinds []schema.GroupVersionKind) []string {
	own := map[string]bool{}
	for kind := range s {
		own[kind.Group] = true
	}

	var required []string

	for _, kind := range kinds {
		if !kubernetesGroups[kind.Group] && !own[kind.Group] {
			required = append(required, fmt.Sprintf("%s.%s.%s", kind.Kind, kind.Version, kind.Group))
		}
	}

	slices.Sort(required)

	return slices.Compact(required)
}
