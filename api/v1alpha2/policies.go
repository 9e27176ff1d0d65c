package v1alpha2

// PoliciesSpec is how the objects of a provider's release are treated. An annotation of an object that patches or
// additionalManifests set takes precedence: the field adoption corresponds to `capstan.dev/adoption-policy`, and so on.
// An annotation of the provider's components cannot allow more than the field.
type PoliciesSpec struct {
	// adoption is whether an object that exists already becomes part of the release: IfUnowned adopts it unless
	// it belongs to another Helm release or has a controller, Always adopts it anyway, Never does not. What is
	// not adopted prevents the installation. Default: IfUnowned.
	// +optional
	// +kubebuilder:validation:Enum=IfUnowned;Never;Always
	Adoption AdoptionPolicy `json:"adoption,omitempty"`

	// update is whether an object is changed after it was created or adopted: Always keeps it as in the
	// release, Once leaves it to users. Default: Always.
	// +optional
	// +kubebuilder:validation:Enum=Always;Once
	Update UpdatePolicy `json:"update,omitempty"`

	// delete is what happens to objects that a new version drops, and to all objects when the provider is
	// removed: Delete deletes them, Orphan leaves them without the marks of the release.
	// CustomResourceDefinitions and namespaces are never deleted. Default: Delete.
	// +optional
	// +kubebuilder:validation:Enum=Delete;Orphan
	Delete DeletePolicy `json:"delete,omitempty"`

	// recreate is whether an object is deleted and created again when an immutable field changes: IfSafe does
	// so if nothing is lost with it, Always does so anyway, Never does not. CustomResourceDefinitions and
	// namespaces are never deleted. Default: IfSafe.
	// +optional
	// +kubebuilder:validation:Enum=IfSafe;Never;Always
	Recreate RecreatePolicy `json:"recreate,omitempty"`

	// missingNamespaces is what happens if the namespace of an object does not exist: Refuse fails, Create
	// creates it, and it stays when the provider is removed. Default: Refuse.
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
