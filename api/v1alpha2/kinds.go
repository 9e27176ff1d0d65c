package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProviderFields holds the fields that all kinds share. Embedding it also gives the kinds most of
// the methods of Provider.
type ProviderFields struct {
	// spec is the desired version and configuration of the provider.
	// +optional
	Spec ProviderSpec `json:"spec,omitempty"`

	// status is the observed state of the provider.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ProviderStatus `json:"status,omitempty"`
}

// GetSpec returns a pointer to the spec.
func (f *ProviderFields) GetSpec() *ProviderSpec { return &f.Spec }

// GetStatus returns a pointer to the status.
func (f *ProviderFields) GetStatus() *ProviderStatus { return &f.Status }

// GetConditions returns status.conditions.
func (f *ProviderFields) GetConditions() []metav1.Condition { return f.Status.Conditions }

// SetConditions replaces status.conditions.
func (f *ProviderFields) SetConditions(conditions []metav1.Condition) {
	f.Status.Conditions = conditions
}

// items returns pointers to the elements of list.
func items[T any, P interface {
	*T
	Provider
}](list []T) []Provider {
	providers := make([]Provider, len(list))
	for i := range list {
		providers[i] = P(&list[i])
	}

	return providers
}

// CoreProvider installs Cluster API itself. Each cluster has one, named `cluster-api`. All other
// providers wait for it to be ready before they are first installed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=coreproviders,shortName=cacp,categories={capstan,cluster-api}
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.installedVersion`
// +kubebuilder:printcolumn:name="Wanted",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.release.revision`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Contract",type=string,priority=1,JSONPath=`.status.contract`
// +kubebuilder:printcolumn:name="Available",type=string,priority=1,JSONPath=`.status.availableUpgrades[-1:].version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.') && self.metadata.name.size() <= 63",message="the name is part of labels: it must be at most 63 characters long and contain no dots"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.release) || (has(self.spec) && has(self.spec.kubeConfig) ? has(oldSelf.spec) && has(oldSelf.spec.kubeConfig) && self.spec.kubeConfig.secretRef.name == oldSelf.spec.kubeConfig.secretRef.name && self.spec.kubeConfig.secretRef.key == oldSelf.spec.kubeConfig.secretRef.key : !has(oldSelf.spec) || !has(oldSelf.spec.kubeConfig))",message="spec.kubeConfig cannot change while the provider is installed, because its release would stay in the former cluster: delete this resource and create another one, or change the content of the Secret"
type CoreProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	ProviderFields    `json:",inline"`
}

// ProviderType returns CoreProviderType.
func (*CoreProvider) ProviderType() ProviderType { return CoreProviderType }

// CoreProviderList is a list of CoreProviders.
//
// +kubebuilder:object:root=true
type CoreProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CoreProvider `json:"items"`
}

// GetItems returns pointers to the items.
func (l *CoreProviderList) GetItems() []Provider { return items(l.Items) }

// BootstrapProvider installs a provider that turns machines into nodes, e.g. `kubeadm`.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=bootstrapproviders,shortName=cabp,categories={capstan,cluster-api}
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.installedVersion`
// +kubebuilder:printcolumn:name="Wanted",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.release.revision`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Contract",type=string,priority=1,JSONPath=`.status.contract`
// +kubebuilder:printcolumn:name="Available",type=string,priority=1,JSONPath=`.status.availableUpgrades[-1:].version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.') && self.metadata.name.size() <= 53",message="the name is part of labels: it must be at most 53 characters long and contain no dots"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.release) || (has(self.spec) && has(self.spec.kubeConfig) ? has(oldSelf.spec) && has(oldSelf.spec.kubeConfig) && self.spec.kubeConfig.secretRef.name == oldSelf.spec.kubeConfig.secretRef.name && self.spec.kubeConfig.secretRef.key == oldSelf.spec.kubeConfig.secretRef.key : !has(oldSelf.spec) || !has(oldSelf.spec.kubeConfig))",message="spec.kubeConfig cannot change while the provider is installed, because its release would stay in the former cluster: delete this resource and create another one, or change the content of the Secret"
type BootstrapProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	ProviderFields    `json:",inline"`
}

// ProviderType returns BootstrapProviderType.
func (*BootstrapProvider) ProviderType() ProviderType { return BootstrapProviderType }

// BootstrapProviderList is a list of BootstrapProviders.
//
// +kubebuilder:object:root=true
type BootstrapProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BootstrapProvider `json:"items"`
}

// GetItems returns pointers to the items.
func (l *BootstrapProviderList) GetItems() []Provider { return items(l.Items) }

// ControlPlaneProvider installs a provider that runs control planes, e.g. `kubeadm`.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=controlplaneproviders,shortName=cacpp,categories={capstan,cluster-api}
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.installedVersion`
// +kubebuilder:printcolumn:name="Wanted",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.release.revision`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Contract",type=string,priority=1,JSONPath=`.status.contract`
// +kubebuilder:printcolumn:name="Available",type=string,priority=1,JSONPath=`.status.availableUpgrades[-1:].version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.') && self.metadata.name.size() <= 49",message="the name is part of labels: it must be at most 49 characters long and contain no dots"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.release) || (has(self.spec) && has(self.spec.kubeConfig) ? has(oldSelf.spec) && has(oldSelf.spec.kubeConfig) && self.spec.kubeConfig.secretRef.name == oldSelf.spec.kubeConfig.secretRef.name && self.spec.kubeConfig.secretRef.key == oldSelf.spec.kubeConfig.secretRef.key : !has(oldSelf.spec) || !has(oldSelf.spec.kubeConfig))",message="spec.kubeConfig cannot change while the provider is installed, because its release would stay in the former cluster: delete this resource and create another one, or change the content of the Secret"
type ControlPlaneProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	ProviderFields    `json:",inline"`
}

// ProviderType returns ControlPlaneProviderType.
func (*ControlPlaneProvider) ProviderType() ProviderType { return ControlPlaneProviderType }

// ControlPlaneProviderList is a list of ControlPlaneProviders.
//
// +kubebuilder:object:root=true
type ControlPlaneProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ControlPlaneProvider `json:"items"`
}

// GetItems returns pointers to the items.
func (l *ControlPlaneProviderList) GetItems() []Provider { return items(l.Items) }

// InfrastructureProvider installs a provider that creates machines and networks, e.g. `aws`,
// `azure` or `docker`.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=infrastructureproviders,shortName=caip,categories={capstan,cluster-api}
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.installedVersion`
// +kubebuilder:printcolumn:name="Wanted",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.release.revision`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Contract",type=string,priority=1,JSONPath=`.status.contract`
// +kubebuilder:printcolumn:name="Available",type=string,priority=1,JSONPath=`.status.availableUpgrades[-1:].version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.') && self.metadata.name.size() <= 48",message="the name is part of labels: it must be at most 48 characters long and contain no dots"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.release) || (has(self.spec) && has(self.spec.kubeConfig) ? has(oldSelf.spec) && has(oldSelf.spec.kubeConfig) && self.spec.kubeConfig.secretRef.name == oldSelf.spec.kubeConfig.secretRef.name && self.spec.kubeConfig.secretRef.key == oldSelf.spec.kubeConfig.secretRef.key : !has(oldSelf.spec) || !has(oldSelf.spec.kubeConfig))",message="spec.kubeConfig cannot change while the provider is installed, because its release would stay in the former cluster: delete this resource and create another one, or change the content of the Secret"
type InfrastructureProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	ProviderFields    `json:",inline"`
}

// ProviderType returns InfrastructureProviderType.
func (*InfrastructureProvider) ProviderType() ProviderType { return InfrastructureProviderType }

// InfrastructureProviderList is a list of InfrastructureProviders.
//
// +kubebuilder:object:root=true
type InfrastructureProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InfrastructureProvider `json:"items"`
}

// GetItems returns pointers to the items.
func (l *InfrastructureProviderList) GetItems() []Provider { return items(l.Items) }

// IPAMProvider installs a provider that allocates IP addresses, e.g. `in-cluster`.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=ipamproviders,shortName=caipamp,categories={capstan,cluster-api}
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.installedVersion`
// +kubebuilder:printcolumn:name="Wanted",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.release.revision`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Contract",type=string,priority=1,JSONPath=`.status.contract`
// +kubebuilder:printcolumn:name="Available",type=string,priority=1,JSONPath=`.status.availableUpgrades[-1:].version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.') && self.metadata.name.size() <= 58",message="the name is part of labels: it must be at most 58 characters long and contain no dots"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.release) || (has(self.spec) && has(self.spec.kubeConfig) ? has(oldSelf.spec) && has(oldSelf.spec.kubeConfig) && self.spec.kubeConfig.secretRef.name == oldSelf.spec.kubeConfig.secretRef.name && self.spec.kubeConfig.secretRef.key == oldSelf.spec.kubeConfig.secretRef.key : !has(oldSelf.spec) || !has(oldSelf.spec.kubeConfig))",message="spec.kubeConfig cannot change while the provider is installed, because its release would stay in the former cluster: delete this resource and create another one, or change the content of the Secret"
type IPAMProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	ProviderFields    `json:",inline"`
}

// ProviderType returns IPAMProviderType.
func (*IPAMProvider) ProviderType() ProviderType { return IPAMProviderType }

// IPAMProviderList is a list of IPAMProviders.
//
// +kubebuilder:object:root=true
type IPAMProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IPAMProvider `json:"items"`
}

// GetItems returns pointers to the items.
func (l *IPAMProviderList) GetItems() []Provider { return items(l.Items) }

// RuntimeExtensionProvider installs a provider of Cluster API runtime extensions.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=runtimeextensionproviders,shortName=carep,categories={capstan,cluster-api}
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.installedVersion`
// +kubebuilder:printcolumn:name="Wanted",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.release.revision`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Contract",type=string,priority=1,JSONPath=`.status.contract`
// +kubebuilder:printcolumn:name="Available",type=string,priority=1,JSONPath=`.status.availableUpgrades[-1:].version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.') && self.metadata.name.size() <= 45",message="the name is part of labels: it must be at most 45 characters long and contain no dots"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.release) || (has(self.spec) && has(self.spec.kubeConfig) ? has(oldSelf.spec) && has(oldSelf.spec.kubeConfig) && self.spec.kubeConfig.secretRef.name == oldSelf.spec.kubeConfig.secretRef.name && self.spec.kubeConfig.secretRef.key == oldSelf.spec.kubeConfig.secretRef.key : !has(oldSelf.spec) || !has(oldSelf.spec.kubeConfig))",message="spec.kubeConfig cannot change while the provider is installed, because its release would stay in the former cluster: delete this resource and create another one, or change the content of the Secret"
type RuntimeExtensionProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	ProviderFields    `json:",inline"`
}

// ProviderType returns RuntimeExtensionProviderType.
func (*RuntimeExtensionProvider) ProviderType() ProviderType { return RuntimeExtensionProviderType }

// RuntimeExtensionProviderList is a list of RuntimeExtensionProviders.
//
// +kubebuilder:object:root=true
type RuntimeExtensionProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RuntimeExtensionProvider `json:"items"`
}

// GetItems returns pointers to the items.
func (l *RuntimeExtensionProviderList) GetItems() []Provider { return items(l.Items) }

// AddonProvider installs a provider that installs add-ons into workload clusters, e.g. `helm`.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=addonproviders,shortName=caap,categories={capstan,cluster-api}
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.installedVersion`
// +kubebuilder:printcolumn:name="Wanted",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.release.revision`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Contract",type=string,priority=1,JSONPath=`.status.contract`
// +kubebuilder:printcolumn:name="Available",type=string,priority=1,JSONPath=`.status.availableUpgrades[-1:].version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.') && self.metadata.name.size() <= 57",message="the name is part of labels: it must be at most 57 characters long and contain no dots"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.release) || (has(self.spec) && has(self.spec.kubeConfig) ? has(oldSelf.spec) && has(oldSelf.spec.kubeConfig) && self.spec.kubeConfig.secretRef.name == oldSelf.spec.kubeConfig.secretRef.name && self.spec.kubeConfig.secretRef.key == oldSelf.spec.kubeConfig.secretRef.key : !has(oldSelf.spec) || !has(oldSelf.spec.kubeConfig))",message="spec.kubeConfig cannot change while the provider is installed, because its release would stay in the former cluster: delete this resource and create another one, or change the content of the Secret"
type AddonProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	ProviderFields    `json:",inline"`
}

// ProviderType returns AddonProviderType.
func (*AddonProvider) ProviderType() ProviderType { return AddonProviderType }

// AddonProviderList is a list of AddonProviders.
//
// +kubebuilder:object:root=true
type AddonProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddonProvider `json:"items"`
}

// GetItems returns pointers to the items.
func (l *AddonProviderList) GetItems() []Provider { return items(l.Items) }
