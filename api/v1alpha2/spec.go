package v1alpha2

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// ProviderSpec is the desired version and configuration of a provider. All kinds share it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.secretName) || !has(self.configSecret)",message="secretName is short for configSecret.name: set only one of the two"
// +kubebuilder:validation:XValidation:rule="!has(self.patches) || !has(self.manifestPatches)",message="set only one of patches and manifestPatches"
// +kubebuilder:validation:XValidation:rule="!has(self.upgradePolicy) || !has(self.upgradePolicy.mode) || self.upgradePolicy.mode == 'Manual' || (has(self.version) && size(self.version) > 0 && !self.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+([-+].*)?$'))",message="upgradePolicy.mode selects from a range of versions: set version to one, such as ~1.13, or upgradePolicy.mode to Manual"
type ProviderSpec struct {
	// version of the provider: an exact version (`v1.13.5`) or a range (`~1.13`, `>=1.13 <1.15`). A
	// range is resolved to the newest available version once; the result is recorded in
	// `status.desiredVersion` and does not change until this field changes, unless upgradePolicy says
	// otherwise. Default: the newest available version, which the operator writes into this field.
	// Both take a pre-release only if there are no others, and only a version whose contract works with
	// core, whose installation they wait for.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^(([=!<>~^]{1,2}\\s*)?v?[0-9xX*]+(\\.[0-9xX*]+){0,2}([-+][0-9A-Za-z.+-]+)?(\\s*(,|\\|\\||\\s-\\s|\\s)\\s*([=!<>~^]{1,2}\\s*)?v?[0-9xX*]+(\\.[0-9xX*]+){0,2}([-+][0-9A-Za-z.+-]+)?)*)?$')",message="must be a version such as v1.13.5, or a range of versions such as ~1.13 or >=1.13 <1.15"
	Version string `json:"version,omitempty"`

	// upgradePolicy lets the operator upgrade the provider to newer versions in the range by itself.
	// Default: it does not.
	// +optional
	UpgradePolicy *UpgradePolicy `json:"upgradePolicy,omitempty"`

	// configSecret is the Secret with the provider's variables, including credentials; each key is a
	// variable, e.g. `AWS_B64ENCODED_CREDENTIALS`. Variables with a default are optional. Missing
	// ones are listed in a condition and in `status.missingVariables`. A change to the Secret takes
	// effect with the next change of this spec or of the annotation
	// `reconcile.fluxcd.io/requestedAt`, and at once if what the spec asks for was never healthy.
	// +optional
	ConfigSecret *SecretReference `json:"configSecret,omitempty"`

	// secretName is short for `configSecret.name`, for a Secret in the provider's own namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// variables of the provider that are not secret, e.g. `EXP_MACHINE_POOL: "true"`. They are
	// stored in plain text, here and in the Helm release's values. If the Secret has the same key,
	// its value takes precedence.
	// +optional
	// +kubebuilder:validation:MaxProperties=512
	Variables map[string]string `json:"variables,omitempty"`

	// fetchConfig is the source of the provider's components and metadata. Default: clusterctl's
	// source for the provider of this kind and name, e.g. for the InfrastructureProvider `aws` the
	// releases of https://github.com/kubernetes-sigs/cluster-api-provider-aws.
	// +optional
	FetchConfig *FetchConfiguration `json:"fetchConfig,omitempty"`

	// manager sets flags of the provider's controller manager, the container `manager` of its
	// Deployment. Default: the flags in the provider's components.
	// +optional
	Manager *ManagerSpec `json:"manager,omitempty"`

	// deployment customizes the Deployment of the provider's controller manager. That is the
	// Deployment with a container named `manager`; if there are several, it is the one that belongs
	// to the provider itself and is not in additionalDeployments. Default: as in the provider's
	// components.
	// +optional
	Deployment *DeploymentSpec `json:"deployment,omitempty"`

	// additionalDeployments customizes the other Deployments of a provider that has several. The key
	// is the Deployment's name, e.g. `azureserviceoperator-controller-manager`.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	AdditionalDeployments map[string]AdditionalDeployment `json:"additionalDeployments,omitempty"`

	// additionalManifests is a ConfigMap whose key `manifests` holds YAML with additional objects
	// that are installed, upgraded and removed with the provider. It may use the provider's
	// variables. Objects without a namespace go into the provider's namespace.
	// +optional
	AdditionalManifests *ConfigMapReference `json:"additionalManifests,omitempty"`

	// patches change the provider's objects before they are installed, its CustomResourceDefinitions
	// included, in the given order. A patch that matches no object is an error.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	Patches []Patch `json:"patches,omitempty"`

	// manifestPatches are JSON merge patches (RFC 7396) written as YAML. Each applies to the objects
	// that match its `kind` and, where present, its `apiVersion`, `metadata.name` and
	// `metadata.namespace`. A patch that matches no object is an error. `patches` is more powerful.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	ManifestPatches []string `json:"manifestPatches,omitempty"`

	// suspend stops the operator from installing, upgrading, correcting or deleting the provider. The
	// status is still updated, and the provider keeps running. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// paused stops the provider by scaling its Deployments to zero. They get their replicas back when
	// it is false again. A paused provider can be upgraded. Default: false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// release configures how the provider's Helm release is managed.
	// +optional
	Release *ReleaseSpec `json:"release,omitempty"`

	// policies are how the objects of the release are adopted, updated, deleted and recreated, unless an annotation of
	// an object says otherwise. They do not concern the provider's CustomResourceDefinitions.
	// +optional
	Policies *PoliciesSpec `json:"policies,omitempty"`

	// crds configures how the provider's CustomResourceDefinitions are managed. They are not part of
	// the Helm release.
	// +optional
	CRDs *CRDsSpec `json:"crds,omitempty"`

	// additionalManagedTypes are types of objects that the provider's managers define at run time, by CRDs that
	// are not part of the provider. Like those of its own types, such objects block the provider's removal.
	// Default: `*.azure.com` for the InfrastructureProvider azure, and none for others.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	AdditionalManagedTypes []ManagedType `json:"additionalManagedTypes,omitempty"`

	// dependsOn are labels of other providers in the same cluster, such as `addon-helm`. The provider is installed
	// and upgraded only while all of them are ready. Core need not be named. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=96
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	DependsOn []string `json:"dependsOn,omitempty"`

	// serviceAccountName is a ServiceAccount in the provider's namespace that the operator
	// impersonates to install the provider. Default: the operator uses its own permissions.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// kubeConfig selects another cluster to install the provider into. Default: the cluster of this
	// resource. It cannot change while the provider is installed. The operator looks at what is installed in
	// another cluster at an interval.
	// +optional
	KubeConfig *KubeConfig `json:"kubeConfig,omitempty"`
}

// ManagedType selects types of objects.
type ManagedType struct {
	// group is the API group of the types, or `*.` and the end of API groups: `*.azure.com`.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	Group string `json:"group"`

	// kind is the only kind. Default: all kinds of the group.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
}

// String returns the group, after the kind if there is one: "Database.example.com".
func (t ManagedType) String() string { return strings.TrimPrefix(t.Kind+"."+t.Group, ".") }

// VariablesSecret returns the name of the Secret with the variables of a provider in the given
// namespace, from configSecret or secretName, and reports whether the spec names one.
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

// Cluster returns an identifier of the cluster that a provider is installed into. It is empty for
// the cluster of the resource itself. Equal identifiers mean the same cluster.
func Cluster(p Provider) string {
	kubeConfig := p.GetSpec().KubeConfig
	if kubeConfig == nil {
		return ""
	}

	return p.GetNamespace() + "/" + kubeConfig.SecretRef.Name + "/" + kubeConfig.SecretRef.Key
}

// SecretReference refers to a Secret.
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

// ConfigMapReference refers to a ConfigMap.
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

// LocalSecretReference refers to a Secret in the provider's namespace.
type LocalSecretReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// KubeConfig refers to the kubeconfig of another cluster.
type KubeConfig struct {
	// secretRef is the Secret in the provider's namespace that holds the kubeconfig.
	SecretRef KubeConfigSecretReference `json:"secretRef"`
}

// KubeConfigSecretReference refers to a kubeconfig in a Secret.
type KubeConfigSecretReference struct {
	LocalSecretReference `json:",inline"`

	// key of the Secret that holds the kubeconfig. Default: `value`, as in the kubeconfig Secrets
	// that Cluster API creates.
	// +optional
	// +kubebuilder:default=value
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}
