package v1alpha2

import (
	"k8s.io/apimachinery/pkg/types"
)

// ProviderSpec says which provider to install, in what version and how. All kinds share it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.secretName) || !has(self.configSecret)",message="secretName is short for configSecret.name: set only one of the two"
// +kubebuilder:validation:XValidation:rule="!has(self.patches) || !has(self.manifestPatches)",message="set only one of patches and manifestPatches"
type ProviderSpec struct {
	// version of the provider: exact (`v1.13.5`), or a range (`~1.13`, `>=1.13 <1.15`) of which the
	// newest available is taken. What it came to is pinned in `status.desiredVersion` and stays
	// until this field changes. Default: the newest available, pre-releases only when there is
	// nothing else; it is written into this field.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^(([=!<>~^]{1,2}\\s*)?v?[0-9xX*]+(\\.[0-9xX*]+){0,2}([-+][0-9A-Za-z.+-]+)?(\\s*(,|\\|\\||\\s-\\s|\\s)\\s*([=!<>~^]{1,2}\\s*)?v?[0-9xX*]+(\\.[0-9xX*]+){0,2}([-+][0-9A-Za-z.+-]+)?)*)?$')",message="must be a version such as v1.13.5, or a range of versions such as ~1.13 or >=1.13 <1.15"
	Version string `json:"version,omitempty"`

	// configSecret is the Secret whose keys are the provider's variables, credentials among them,
	// e.g. the key `AWS_B64ENCODED_CREDENTIALS`. A variable that has a default need not be there;
	// all that are missing are named in a condition and in `status.missingVariables`. A changed
	// Secret is taken up at once while the provider is not ready, and otherwise with the next
	// change of this resource or of its annotation `reconcile.fluxcd.io/requestedAt`.
	// +optional
	ConfigSecret *SecretReference `json:"configSecret,omitempty"`

	// secretName is short for `configSecret.name`, for a Secret in the provider's own namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// variables of the provider that are not secret, e.g. `EXP_MACHINE_POOL: "true"`. They are
	// stored in clear text here and in the Helm release's values. A key of the Secret wins over the
	// same key here.
	// +optional
	// +kubebuilder:validation:MaxProperties=512
	Variables map[string]string `json:"variables,omitempty"`

	// fetchConfig says where the provider's components and metadata come from. Default: where
	// clusterctl gets the provider of this kind and name from, e.g. for the InfrastructureProvider
	// `aws` the releases of https://github.com/kubernetes-sigs/cluster-api-provider-aws.
	// +optional
	FetchConfig *FetchConfiguration `json:"fetchConfig,omitempty"`

	// manager sets flags of the provider's controller manager, which is the container `manager` of
	// its Deployment. Default: what the provider's release says.
	// +optional
	Manager *ManagerSpec `json:"manager,omitempty"`

	// deployment changes the Deployment of the provider's controller manager: the one with a
	// container `manager`, and of several the one that is the provider's own and not in
	// additionalDeployments. Default: what the provider's release says.
	// +optional
	Deployment *DeploymentSpec `json:"deployment,omitempty"`

	// additionalDeployments does what manager and deployment do, for the other Deployments of a
	// provider that has several. The key is the Deployment's name, e.g.
	// `azureserviceoperator-controller-manager`.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	AdditionalDeployments map[string]AdditionalDeployment `json:"additionalDeployments,omitempty"`

	// additionalManifests is a ConfigMap whose key `manifests` holds YAML of objects that are
	// installed, upgraded and removed together with the provider. The provider's variables may be
	// used in it. Objects that name no namespace are put into the provider's.
	// +optional
	AdditionalManifests *ConfigMapReference `json:"additionalManifests,omitempty"`

	// patches change the provider's objects before they are installed, in the given order. One that
	// matches no object is an error. CustomResourceDefinitions cannot be patched.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	Patches []Patch `json:"patches,omitempty"`

	// manifestPatches are JSON merge patches (RFC 7396) written as YAML. Each changes the objects
	// with the patch's `kind`, and with its `apiVersion`, `metadata.name` and `metadata.namespace`
	// where it has them. One that matches no object is an error. `patches` can do more.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	ManifestPatches []string `json:"manifestPatches,omitempty"`

	// suspend makes the operator leave the provider alone: nothing is installed, upgraded,
	// corrected or deleted while it is true. The status is still kept up to date. The provider
	// itself goes on running. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// paused stops the provider: its Deployments are scaled to no replicas, and get their replicas
	// back when it is false again. It can be upgraded while paused. Default: false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// release says how the provider's Helm release is made and kept.
	// +optional
	Release *ReleaseSpec `json:"release,omitempty"`

	// crds says how the provider's CustomResourceDefinitions are handled. They are not part of the
	// Helm release.
	// +optional
	CRDs *CRDsSpec `json:"crds,omitempty"`

	// serviceAccountName is a ServiceAccount in the provider's namespace with whose permissions the
	// provider is installed. Default: the operator's own permissions.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// kubeConfig points to another cluster to install the provider into. Default: the cluster this
	// resource is in.
	// +optional
	KubeConfig *KubeConfig `json:"kubeConfig,omitempty"`
}

// VariablesSecret returns the Secret with the provider's variables, which configSecret or
// secretName names, for a provider in the given namespace. It is false when the spec names none.
func (s *ProviderSpec) VariablesSecret(namespace string) (types.NamespacedName, bool) {
	switch {
	case s.ConfigSecret != nil && s.ConfigSecret.Namespace != "":
		return types.NamespacedName{Namespace: s.ConfigSecret.Namespace, Name: s.ConfigSecret.Name}, true
	case s.ConfigSecret != nil:
		return types.NamespacedName{Namespace: namespace, Name: s.ConfigSecret.Name}, true
	case s.SecretName != "":
		return types.NamespacedName{Namespace: namespace, Name: s.SecretName}, true
	}

	return types.NamespacedName{}, false
}

// Cluster names the cluster that a provider is installed into: empty for the one that its resource
// is in. Equal names mean the same one.
func Cluster(p Provider) string {
	k := p.GetSpec().KubeConfig
	if k == nil {
		return ""
	}

	return p.GetNamespace() + "/" + k.SecretRef.Name + "/" + k.SecretRef.Key
}

// SecretReference points to a Secret.
type SecretReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace of the Secret. Default: the provider's namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// ConfigMapReference points to a ConfigMap.
type ConfigMapReference struct {
	// name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace of the ConfigMap. Default: the provider's namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// LocalSecretReference points to a Secret in the provider's namespace.
type LocalSecretReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// KubeConfig points to the kubeconfig of another cluster.
type KubeConfig struct {
	// secretRef is the Secret that holds the kubeconfig, in the provider's namespace.
	SecretRef KubeConfigSecretReference `json:"secretRef"`
}

// KubeConfigSecretReference points to a kubeconfig in a Secret.
type KubeConfigSecretReference struct {
	LocalSecretReference `json:",inline"`

	// key of the Secret that holds the kubeconfig. Default: `value`, as in the kubeconfig Secrets
	// that Cluster API makes.
	// +optional
	// +kubebuilder:default=value
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}
