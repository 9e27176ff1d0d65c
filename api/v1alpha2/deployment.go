package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
)

// AdditionalDeployment customizes one more Deployment of a provider.
type AdditionalDeployment struct {
	// manager sets flags of the controller manager in this Deployment.
	// +optional
	Manager *ManagerSpec `json:"manager,omitempty"`

	// deployment customizes this Deployment.
	// +optional
	Deployment *DeploymentSpec `json:"deployment,omitempty"`
}

// DeploymentSpec customizes a Deployment. Each field that is set replaces the one in the provider's
// components.
type DeploymentSpec struct {
	// replicas is the number of pods. 0 stops the provider.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// highAvailability runs two pods, on different nodes if there are several, so that webhooks answer while
	// pods are replaced, evicted or deleted. It has no effect on a Deployment that cannot run two pods, e.g.
	// without leader election, and an event reports that. Other fields, patches and the components take
	// precedence. Default: the operator's flag `--manager-high-availability`.
	// +optional
	HighAvailability *bool `json:"highAvailability,omitempty"`

	// nodeSelector lists the labels that a node must have to run the pods, e.g.
	// `node-role.kubernetes.io/control-plane: ""`, in place of those of the components. An empty map removes them.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitzero"`

	// tolerations of the pods, in place of those of the components, such as the one for nodes of the control plane. An
	// empty list removes them.
	// +optional
	Tolerations *[]corev1.Toleration `json:"tolerations,omitempty"`

	// affinity of the pods, in place of that of the components.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// containers to customize, by name, including init containers. Others are unchanged.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Containers []ContainerSpec `json:"containers,omitempty"`

	// serviceAccountName is the ServiceAccount of the pods.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// imagePullSecrets are Secrets in the provider's namespace with credentials for registries, in place of those of
	// the components. An empty list removes them.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitzero"`

	// podLabels are labels to add to the pods. Those of the Deployment's selector cannot be changed.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	PodLabels map[string]string `json:"podLabels,omitempty"`

	// podAnnotations are annotations to add to the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`

	// priorityClassName is the priority class of the pods.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// topologySpreadConstraints of the pods, in place of those of the components. An empty list removes them.
	// +optional
	TopologySpreadConstraints *[]corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// securityContext has fields to set in the security context of the pods. Others are unchanged.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`
}

// ContainerSpec customizes a container of a Deployment.
//
// +kubebuilder:validation:XValidation:rule="!has(self.image) || !has(self.imageUrl)",message="set only one of image and imageUrl"
type ContainerSpec struct {
	// name of the container, which must exist. That of a controller manager is named `manager`.
	Name string `json:"name"`

	// imageUrl replaces the image reference, e.g. `registry.example.com/capi/cluster-api-controller:v1.13.5`.
	// +optional
	ImageURL *string `json:"imageUrl,omitempty"`

	// image replaces parts of the image reference.
	// +optional
	Image *ImageMeta `json:"image,omitempty"`

	// args are flags to set, including the dashes, e.g. `--awscluster-concurrency: "12"`. Others are unchanged.
	// Fields of `manager` take precedence. `--namespace` of the container `manager` is ignored, because a
	// provider watches all namespaces, and an event reports that.
	// +optional
	Args map[string]string `json:"args,omitempty"`

	// env are environment variables to set, by name. Others are unchanged.
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// resources are requests and limits to set. Others are unchanged.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// command replaces the container's entrypoint.
	// +optional
	Command []string `json:"command,omitempty"`
}

// ImageMeta replaces parts of an image reference of the form `repository/name:tag`.
type ImageMeta struct {
	// repository is the registry and the path before the name, e.g. `registry.example.com/capi`. Default: as in
	// the components.
	// +optional
	Repository string `json:"repository,omitempty"`

	// name of the image, e.g. `cluster-api-controller`. Default: as in the components.
	// +optional
	Name string `json:"name,omitempty"`

	// tag of the image, e.g. `v1.13.5`. Default: as in the components.
	// +optional
	Tag string `json:"tag,omitempty"`
}

// Patch changes objects of the provider before they are installed.
type Patch struct {
	// patch is YAML or JSON. A list is a JSON patch (RFC 6902). A map is a strategic merge patch for
	// Kubernetes' built-in kinds, and a JSON merge patch (RFC 7396) for others; `$patch: delete` removes an
	// object of any kind. A patch cannot change the identity of an object.
	// +kubebuilder:validation:MinLength=1
	Patch string `json:"patch,omitempty"`

	// target selects the objects to change, by exact values, not by patterns as in kustomize. Default: for a
	// map, the objects with its apiVersion, kind, metadata.name and metadata.namespace, as far as they are set;
	// for a list, all objects.
	// +optional
	Target *PatchTarget `json:"target,omitempty"`
}

// PatchTarget selects objects of the provider.
type PatchTarget struct {
	// group of the object's API, e.g. `apps`.
	// +optional
	Group string `json:"group,omitempty"`

	// version of the object's API, e.g. `v1`.
	// +optional
	Version string `json:"version,omitempty"`

	// kind of the object, e.g. `Deployment`.
	// +optional
	Kind string `json:"kind,omitempty"`

	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// labelSelector that the object's labels must match, e.g. `app=manager,tier!=test`.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}
