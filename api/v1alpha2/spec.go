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
	// version of the provider: an exact version (`v1.13.5`) or a range (`~1.13`, `>=1.13 <1.15`). A range is
	// resolved once, to the newest version in it: `status.desiredVersion` changes only with this field, or as
	// upgradePolicy allows. Default: the newest version, which the operator writes into this field. Both select
	// only versions that work with core's contract, and a pre-release only if there is nothing else.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^(([=!<>~^]{1,2}\\s*)?v?[0-9xX*]+(\\.[0-9xX*]+){0,2}([-+][0-9A-Za-z.+-]+)?(\\s*(,|\\|\\||\\s-\\s|\\s)\\s*([=!<>~^]{1,2}\\s*)?v?[0-9xX*]+(\\.[0-9xX*]+){0,2}([-+][0-9A-Za-z.+-]+)?)*)?$')",message="must be a version such as v1.13.5, or a range of versions such as ~1.13 or >=1.13 <1.15"
	Version string `json:"version,omitempty"`

	// upgradePolicy enables automatic upgrades to newer versions in the range of `version` that have the same
	// contract. Default: no automatic upgrades.
	// +optional
	UpgradePolicy *UpgradePolicy `json:"upgradePolicy,omitempty"`

	// configSecret is the Secret with the provider's variables, including credentials: each key is a variable,
	// e.g. `AWS_B64ENCODED_CREDENTIALS`. Variables that have a default can be left out;
	// `status.missingVariables` lists what is missing. A change of the Secret takes effect with the next change
	// of this spec or of the annotation `reconcile.fluxcd.io/requestedAt`, and at once if what the spec asks
	// for was never healthy.
	// +optional
	ConfigSecret *SecretReference `json:"configSecret,omitempty"`

	// secretName is short for `configSecret.name`, for a Secret in the provider's namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// variables of the provider that are not secret, e.g. `EXP_MACHINE_POOL: "true"`. The Helm release contains
	// them as plain text, too. The same key in the Secret takes precedence.
	// +optional
	// +kubebuilder:validation:MaxProperties=512
	Variables map[string]string `json:"variables,omitempty"`

	// fetchConfig is the source of the provider's components and metadata. Default: the operator's chart
	// repository if it has one, otherwise clusterctl's source for the provider of this kind and name.
	// +optional
	FetchConfig *FetchConfiguration `json:"fetchConfig,omitempty"`

	// manager sets flags of the provider's controller manager, the container `manager` of its Deployment. A
	// field is ignored if the manager has no flag for it, and an event reports that. Default: as in the
	// components.
	// +optional
	Manager *ManagerSpec `json:"manager,omitempty"`

	// deployment customizes the Deployment of the provider's controller manager. If there are several, that is
	// the one with a container named `manager` that is not in additionalDeployments. Default: as in the
	// components.
	// +optional
	Deployment *DeploymentSpec `json:"deployment,omitempty"`

	// additionalDeployments customizes other Deployments of the provider, by name, e.g.
	// `azureserviceoperator-controller-manager`.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	AdditionalDeployments map[string]AdditionalDeployment `json:"additionalDeployments,omitempty"`

	// additionalManifests is a ConfigMap whose key `manifests` holds YAML of further objects, which are
	// installed, upgraded and removed with the provider. They can use its variables, and go into its namespace
	// unless they name another.
	// +optional
	AdditionalManifests *ConfigMapReference `json:"additionalManifests,omitempty"`

	// patches change the provider's objects, including its CustomResourceDefinitions, before they are
	// installed, one after the other. A patch that matches no object is an error.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	Patches []Patch `json:"patches,omitempty"`

	// manifestPatches are JSON merge patches (RFC 7396) as YAML, each for the objects with its `kind` and, if
	// set, its `apiVersion`, `metadata.name` and `metadata.namespace`. A patch that matches no object is an
	// error. `patches` can do more.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	ManifestPatches []string `json:"manifestPatches,omitempty"`

	// suspend stops the operator from installing, upgrading, correcting or deleting the provider, which keeps
	// running. The status is still updated. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// paused scales the provider's Deployments to zero until it is false again. A paused provider can be
	// upgraded. Default: false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// release configures the provider's Helm release.
	// +optional
	Release *ReleaseSpec `json:"release,omitempty"`

	// policies are how objects of the release are adopted, updated, deleted and recreated, unless annotations
	// of the objects say otherwise. They do not apply to the provider's CustomResourceDefinitions.
	// +optional
	Policies *PoliciesSpec `json:"policies,omitempty"`

	// crds configures the provider's CustomResourceDefinitions. They are not part of the Helm release, and stay
	// when the provider is removed.
	// +optional
	CRDs *CRDsSpec `json:"crds,omitempty"`

	// additionalManagedTypes are further types whose objects block the provider's removal, e.g. those that its
	// managers define at run time. Default: `*.azure.com` for the InfrastructureProvider azure, otherwise none.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	AdditionalManagedTypes []ManagedType `json:"additionalManagedTypes,omitempty"`

	// dependsOn are release names of other providers in the same cluster, e.g. `addon-helm`, that must be ready before
	// the provider is installed or upgraded. Core need not be named. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=96
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	DependsOn []string `json:"dependsOn,omitempty"`

	// serviceAccountName is a ServiceAccount in the provider's namespace that the operator impersonates for
	// this provider. Default: that of the operator's flag `--default-service-account`, or else the operator's
	// own permissions.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// kubeConfig selects another cluster to install the provider into. It cannot change while the provider is
	// installed. Default: the cluster of this resource.
	// +optional
	KubeConfig *KubeConfig `json:"kubeConfig,omitempty"`
}

// ManagedType selects types of objects.
type ManagedType struct {
	// group is an API group, or `*.` and the end of API groups, e.g. `*.azure.com`.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	Group string `json:"group"`

	// kind is the only kind of the group. Default: all kinds.
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
	// secretRef is the Secret with the kubeconfig, in the provider's namespace.
	SecretRef KubeConfigSecretReference `json:"secretRef"`
}

// KubeConfigSecretReference refers to a kubeconfig in a Secret.
type KubeConfigSecretReference struct {
	LocalSecretReference `json:",inline"`

	// key of the kubeconfig in the Secret. Default: `value`, as in Secrets of Cluster API.
	// +optional
	// +kubebuilder:default=value
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}
