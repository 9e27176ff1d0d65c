package v1alpha2

// PoliciesSpec is how the objects of a provider's release are treated. An annotation of an object that patches or
// additionalManifests set takes precedence: the field adoption corresponds to `capstan.dev/adoption-policy`, and so on.
// An annotation of the provider's components cannot allow more than the field.
type PoliciesSpec struct {
	// adoption is whether an object that exists already becomes part of the release: IfUnowned adopts it unless it
	// belongs to another Helm release or has a controller, Never does not, Always does, whatever it belongs to.
	// What is not adopted prevents the installation. Default: IfUnowned.
	// +optional
	// +kubebuilder:validation:Enum=IfUnowned;Never;Always
	Adoption AdoptionPolicy `json:"adoption,omitempty"`

	// update is whether an object is changed after it was created or adopted: Always keeps it as the release
	// defines it, Once leaves it to users. Default: Always.
	// +optional
	// +kubebuilder:validation:Enum=Always;Once
	Update UpdatePolicy `json:"update,omitempty"`

	// delete is what happens to an object that a new version drops, and to all objects when the provider is removed:
	// Delete deletes it, Orphan leaves it in the cluster without the marks of the release. CustomResourceDefinitions and
	// namespaces are never deleted. Default: Delete.
	// +optional
	// +kubebuilder:validation:Enum=Delete;Orphan
	Delete DeletePolicy `json:"delete,omitempty"`

	// recreate is whether an object is deleted and created again when an immutable field changes: IfSafe does so if
	// nothing is lost with it, Never does not, Always does, whatever is lost. CustomResourceDefinitions and namespaces
	// are never deleted. Default: IfSafe.
	// +optional
	// +kubebuilder:validation:Enum=IfSafe;Never;Always
	Recreate RecreatePolicy `json:"recreate,omitempty"`

	// missingNamespaces is what happens if an object names a namespace that does not exist: Refuse fails, Create
	// creates the namespace, which stays when the provider is removed. Default: Refuse.
	// +optional
	// +kubebuilder:validation:Enum=Refuse;Create
	MissingNamespaces MissingNamespacePolicy `json:"missingNamespaces,omitempty"`
}

// AdoptionPolicy is whether an object that exists becomes part of a release.
type AdoptionPolicy string

// The values of policies.adoption.
const (
	AdoptionIfUnowned AdoptionPolicy = "IfUnowned"
	AdoptionNever     AdoptionPolicy = "Never"
	AdoptionAlways    AdoptionPolicy = "Always"
)

// UpdatePolicy is whether an object of a release is changed.
type UpdatePolicy string

// The values of policies.update.
const (
	UpdateAlways UpdatePolicy = "Always"
	UpdateOnce   UpdatePolicy = "Once"
)

// DeletePolicy is what happens to an object that is no longer part of a release.
type DeletePolicy string

// The values of policies.delete.
const (
	DeleteObject DeletePolicy = "Delete"
	DeleteOrphan DeletePolicy = "Orphan"
)

// RecreatePolicy is whether an object is recreated to change an immutable field.
type RecreatePolicy string

// The values of policies.recreate.
const (
	RecreateIfSafe RecreatePolicy = "IfSafe"
	RecreateNever  RecreatePolicy = "Never"
	RecreateAlways RecreatePolicy = "Always"
)

// MissingNamespacePolicy is what happens if the namespace of an object does not exist.
type MissingNamespacePolicy string

// The values of policies.missingNamespaces.
const (
	MissingNamespaceRefuse MissingNamespacePolicy = "Refuse"
	MissingNamespaceCreate MissingNamespacePolicy = "Create"
)
