package v1alpha2

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Provider is any one of the seven kinds. It satisfies the Getter and Setter of
// github.com/fluxcd/pkg/runtime/conditions.
//
// +kubebuilder:object:generate=false
type Provider interface {
	client.Object
	// ProviderType says which of the seven kinds this is, whether or not TypeMeta is set.
	ProviderType() ProviderType
	// GetSpec and GetStatus point into the object, so that writing through them changes it.
	GetSpec() *ProviderSpec
	GetStatus() *ProviderStatus
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
}

// ProviderList is a list of one of the seven kinds.
//
// +kubebuilder:object:generate=false
type ProviderList interface {
	client.ObjectList
	// GetItems returns pointers to the list's own elements.
	GetItems() []Provider
}

// ProviderType names a type of provider. The value is both clusterctl's provider type and the kind
// of the resource.
type ProviderType string

// The provider types, as clusterctl names them.
const (
	CoreProviderType             ProviderType = "CoreProvider"
	BootstrapProviderType        ProviderType = "BootstrapProvider"
	ControlPlaneProviderType     ProviderType = "ControlPlaneProvider"
	InfrastructureProviderType   ProviderType = "InfrastructureProvider"
	IPAMProviderType             ProviderType = "IPAMProvider"
	RuntimeExtensionProviderType ProviderType = "RuntimeExtensionProvider"
	AddonProviderType            ProviderType = "AddonProvider"
)

// CoreProviderName is the only name a CoreProvider may have.
const CoreProviderName = "cluster-api"

// typeInfo is all that tells one provider type from another.
//
// +kubebuilder:object:generate=false
type typeInfo struct {
	providerType   ProviderType
	name           string // cluster-api-operator's name of the type, in its labels and object names
	labelPrefix    string // of the label cluster.x-k8s.io/provider
	componentsFile string // in a release or a local repository
	newObject      func() Provider
	newList        func() ProviderList
}

// typeTable is in clusterctl's order of installation.
var typeTable = []typeInfo{
	{CoreProviderType, "core", "", "core-components.yaml",
		func() Provider { return &CoreProvider{} }, func() ProviderList { return &CoreProviderList{} }},
	{BootstrapProviderType, "bootstrap", "bootstrap-", "bootstrap-components.yaml",
		func() Provider { return &BootstrapProvider{} }, func() ProviderList { return &BootstrapProviderList{} }},
	{ControlPlaneProviderType, "control-plane", "control-plane-", "control-plane-components.yaml",
		func() Provider { return &ControlPlaneProvider{} }, func() ProviderList { return &ControlPlaneProviderList{} }},
	{InfrastructureProviderType, "infrastructure", "infrastructure-", "infrastructure-components.yaml",
		func() Provider { return &InfrastructureProvider{} }, func() ProviderList { return &InfrastructureProviderList{} }},
	{IPAMProviderType, "ipam", "ipam-", "ipam-components.yaml",
		func() Provider { return &IPAMProvider{} }, func() ProviderList { return &IPAMProviderList{} }},
	{
		RuntimeExtensionProviderType,
		"runtimeextension",
		"runtime-extension-",
		"runtime-extension-components.yaml",
		func() Provider { return &RuntimeExtensionProvider{} },
		func() ProviderList { return &RuntimeExtensionProviderList{} },
	},
	{AddonProviderType, "addon", "addon-", "addon-components.yaml",
		func() Provider { return &AddonProvider{} }, func() ProviderList { return &AddonProviderList{} }},
}

// ProviderTypes returns the seven types in clusterctl's order of installation: core first.
func ProviderTypes() []ProviderType {
	all := make([]ProviderType, len(typeTable))
	for i, t := range typeTable {
		all[i] = t.providerType
	}

	return all
}

// info returns the zero typeInfo for a value that is none of the seven, so that all methods return
// zero values then.
func (t ProviderType) info() typeInfo {
	for _, known := range typeTable {
		if known.providerType == t {
			return known
		}
	}

	return typeInfo{}
}

// Name returns cluster-api-operator's name of the type, e.g. "infrastructure" or
// "runtimeextension". It is the value of ConfigMapTypeLabel.
func (t ProviderType) Name() string { return t.info().name }

// ComponentsFile returns the name of the file of components in a release, e.g.
// "infrastructure-components.yaml".
func (t ProviderType) ComponentsFile() string { return t.info().componentsFile }

// Label returns clusterctl's label of the provider of that name: "infrastructure-aws" for aws, and
// for core the name itself, "cluster-api". It is the value of the label cluster.x-k8s.io/provider,
// the folder in a local repository and the chart's name.
func (t ProviderType) Label(name string) string { return t.info().labelPrefix + name }

// GroupVersionKind returns the kind of the type's resources.
func (t ProviderType) GroupVersionKind() schema.GroupVersionKind {
	return GroupVersion.WithKind(string(t))
}

// New returns an empty resource of the type, nil when t is none of the seven.
func (t ProviderType) New() Provider {
	if info := t.info(); info.newObject != nil {
		return info.newObject()
	}

	return nil
}

// NewList returns an empty list of the type, nil when t is none of the seven.
func (t ProviderType) NewList() ProviderList {
	if info := t.info(); info.newList != nil {
		return info.newList()
	}

	return nil
}

// ParseLabel is the inverse of Label: "infrastructure-aws" is InfrastructureProviderType and "aws".
// A label without one of the prefixes is the core type's, as in clusterctl.
func ParseLabel(label string) (ProviderType, string) {
	for _, t := range typeTable {
		if name, found := strings.CutPrefix(label, t.labelPrefix); found && t.labelPrefix != "" {
			return t.providerType, name
		}
	}

	return CoreProviderType, label
}

// Label returns clusterctl's label of the provider, see ProviderType.Label.
func Label(p Provider) string { return p.ProviderType().Label(p.GetName()) }
