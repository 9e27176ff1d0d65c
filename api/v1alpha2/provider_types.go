package v1alpha2

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Provider is a resource of one of the seven kinds. It implements Getter and Setter of
// github.com/fluxcd/pkg/runtime/conditions.
//
// +kubebuilder:object:generate=false
type Provider interface {
	metav1.Object
	runtime.Object
	// ProviderType returns the type of the provider, even if TypeMeta is not set.
	ProviderType() ProviderType
	// GetSpec and GetStatus return pointers into the object.
	GetSpec() *ProviderSpec
	GetStatus() *ProviderStatus
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
}

// ProviderList is a list of one of the seven kinds.
//
// +kubebuilder:object:generate=false
type ProviderList interface {
	metav1.ListInterface
	runtime.Object
	// GetItems returns pointers to the items.
	GetItems() []Provider
}

// ProviderType is a type of provider. Its value is both clusterctl's name of the type and the kind
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

// CoreProviderName is the only valid name of a CoreProvider.
const CoreProviderName = "cluster-api"

// typeInfo holds the properties of a provider type.
//
// +kubebuilder:object:generate=false
type typeInfo struct {
	providerType ProviderType

	// name is cluster-api-operator's name of the type, used in its labels and object names.
	name string

	// labelPrefix precedes the provider's name in the label cluster.x-k8s.io/provider.
	labelPrefix string

	// componentsFile is the name of the components file in a release or a local repository.
	componentsFile string

	newObject func() Provider
	newList   func() ProviderList
}

// typeTable lists the types in clusterctl's installation order.
var typeTable = []typeInfo{
	{
		providerType:   CoreProviderType,
		name:           "core",
		componentsFile: "core-components.yaml",
		newObject:      func() Provider { return &CoreProvider{} },
		newList:        func() ProviderList { return &CoreProviderList{} },
	},
	{
		providerType:   BootstrapProviderType,
		name:           "bootstrap",
		labelPrefix:    "bootstrap-",
		componentsFile: "bootstrap-components.yaml",
		newObject:      func() Provider { return &BootstrapProvider{} },
		newList:        func() ProviderList { return &BootstrapProviderList{} },
	},
	{
		providerType:   ControlPlaneProviderType,
		name:           "control-plane",
		labelPrefix:    "control-plane-",
		componentsFile: "control-plane-components.yaml",
		newObject:      func() Provider { return &ControlPlaneProvider{} },
		newList:        func() ProviderList { return &ControlPlaneProviderList{} },
	},
	{
		providerType:   InfrastructureProviderType,
		name:           "infrastructure",
		labelPrefix:    "infrastructure-",
		componentsFile: "infrastructure-components.yaml",
		newObject:      func() Provider { return &InfrastructureProvider{} },
		newList:        func() ProviderList { return &InfrastructureProviderList{} },
	},
	{
		providerType:   IPAMProviderType,
		name:           "ipam",
		labelPrefix:    "ipam-",
		componentsFile: "ipam-components.yaml",
		newObject:      func() Provider { return &IPAMProvider{} },
		newList:        func() ProviderList { return &IPAMProviderList{} },
	},
	{
		providerType:   RuntimeExtensionProviderType,
		name:           "runtimeextension",
		labelPrefix:    "runtime-extension-",
		componentsFile: "runtime-extension-components.yaml",
		newObject:      func() Provider { return &RuntimeExtensionProvider{} },
		newList:        func() ProviderList { return &RuntimeExtensionProviderList{} },
	},
	{
		providerType:   AddonProviderType,
		name:           "addon",
		labelPrefix:    "addon-",
		componentsFile: "addon-components.yaml",
		newObject:      func() Provider { return &AddonProvider{} },
		newList:        func() ProviderList { return &AddonProviderList{} },
	},
}

// ProviderTypes returns the seven types in clusterctl's installation order, core first.
func ProviderTypes() []ProviderType {
	types := make([]ProviderType, len(typeTable))
	for i, t := range typeTable {
		types[i] = t.providerType
	}

	return types
}

// info returns the properties of t. For an unknown type it returns the zero value, so that the
// methods below return zero values too.
func (t ProviderType) info() typeInfo {
	for _, known := range typeTable {
		if known.providerType == t {
			return known
		}
	}

	return typeInfo{}
}

// Name returns cluster-api-operator's name of the type, e.g. "infrastructure" or
// "runtimeextension".
func (t ProviderType) Name() string { return t.info().name }

// ComponentsFile returns the name of the components file in a release, e.g.
// "infrastructure-components.yaml".
func (t ProviderType) ComponentsFile() string { return t.info().componentsFile }

// Label returns clusterctl's label of the provider with the given name, e.g. "infrastructure-aws"
// for aws. For core it is the name itself, "cluster-api". The label is the value of
// cluster.x-k8s.io/provider, the folder in a local repository and the name of the chart.
func (t ProviderType) Label(name string) string { return t.info().labelPrefix + name }

// GroupVersionKind returns the kind of the type's resources.
func (t ProviderType) GroupVersionKind() schema.GroupVersionKind {
	return GroupVersion.WithKind(string(t))
}

// New returns an empty resource of the type, or nil if t is unknown.
func (t ProviderType) New() Provider {
	if info := t.info(); info.newObject != nil {
		return info.newObject()
	}

	return nil
}

// NewList returns an empty list of the type, or nil if t is unknown.
func (t ProviderType) NewList() ProviderList {
	if info := t.info(); info.newList != nil {
		return info.newList()
	}

	return nil
}

// ParseLabel is the inverse of Label: for "infrastructure-aws" it returns
// InfrastructureProviderType and "aws". As in clusterctl, a label without a known prefix belongs to
// the core type.
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

// IsReady reports whether a provider is ready, in the terms of kstatus: not while it is reconciled or stalled.
func IsReady(p Provider) bool {
	is := func(condition string) bool { return meta.IsStatusConditionTrue(p.GetConditions(), condition) }

	return is(ReadyCondition) && !is(ReconcilingCondition) && !is(StalledCondition)
}
