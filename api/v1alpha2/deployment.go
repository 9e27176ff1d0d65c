package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
)

// AdditionalDeployment changes one further Deployment of a provider.
type AdditionalDeployment struct {
	// manager sets flags of the controller manager in this Deployment.
	// +optional
	Manager *ManagerSpec `json:"manager,omitempty"`

	// deployment changes this Deployment.
	// +optional
	Deployment *DeploymentSpec `json:"deployment,omitempty"`
}

// DeploymentSpec changes a Deployment. A field that is set replaces the one in the provider's
// release.
type DeploymentSpec struct {
	// replicas is the number of pods. 0 stops the provider.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// nodeSelector names labels that a node must have to run the pods, e.g.
	// `node-role.kubernetes.io/control-plane: ""`.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the pods. An empty list removes those of the provider's release.
	// +optional
	Tolerations *[]corev1.Toleration `json:"tolerations,omitempty"`

	// affinity of the pods: which nodes and which other pods they prefer, need or avoid.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// containers to change, by name, init containers among them. Containers that are not named stay
	// as they are.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Containers []ContainerSpec `json:"containers,omitempty"`

	// serviceAccountName is the ServiceAccount of the pods.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// imagePullSecrets are Secrets in the provider's namespace with credentials for the registries
	// of the images.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// ContainerSpec changes a container of a Deployment.
//
// +kubebuilder:validation:XValidation:rule="!has(self.image) || !has(self.imageUrl)",message="set only one of image and imageUrl"
type ContainerSpec struct {
	// name of the container. It must be one of the Deployment's; a provider's own is called
	// `manager`.
	Name string `json:"name"`

	// imageUrl replaces the whole reference of the image, e.g.
	// `registry.example.com/capi/cluster-api-controller:v1.13.5`.
	// +optional
	ImageURL *string `json:"imageUrl,omitempty"`

	// image replaces parts of the reference of the image. To set the whole of it there is
	// `imageUrl`.
	// +optional
	Image *ImageMeta `json:"image,omitempty"`

	// args are flags to set, with their dashes, e.g. `--awscluster-concurrency: "12"`. The others
	// stay. Fields of `manager` win over them. `--namespace` of the container `manager` is ignored,
	// with an event: a provider watches all namespaces.
	// +optional
	Args map[string]string `json:"args,omitempty"`

	// env are environment variables to set, by name. The others stay.
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// resources are requests and limits to set. The others stay.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// command replaces the container's entry point.
	// +optional
	Command []string `json:"command,omitempty"`
}

// ImageMeta replaces parts of an image's reference `repository/name:tag`.
type ImageMeta struct {
	// repository is the registry and the path before the name, e.g. `registry.example.com/capi`.
	// Default: as released.
	// +optional
	Repository string `json:"repository,omitempty"`

	// name of the image, e.g. `cluster-api-controller`. Default: as released.
	// +optional
	Name string `json:"name,omitempty"`

	// tag of the image, e.g. `v1.13.5`. Default: as released.
	// +optional
	Tag string `json:"tag,omitempty"`
}

// Patch changes objects of the provider before they are installed.
type Patch struct {
	// patch is YAML or JSON. A list is a JSON patch (RFC 6902). A map is merged into the object: in
	// Kubernetes' own kinds as a strategic merge patch, in others as a JSON merge patch (RFC 7396).
	// It never changes which object it is.
	// +kubebuilder:validation:MinLength=1
	Patch string `json:"patch,omitempty"`

	// target selects the objects to change; all of its fields that are set must match. Default: all
	// objects; of a map, those with its apiVersion, kind, metadata.name and metadata.namespace,
	// where it has them.
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
