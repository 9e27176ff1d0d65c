package crds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definition is a CustomResourceDefinition without its schemas, which are all but a few hundred bytes of it. The operator
// watches CRDs as this type: the schemas are skipped while decoding and take no memory.
type Definition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DefinitionSpec   `json:"spec"`
	Status DefinitionStatus `json:"status"`
}

// DefinitionSpec is what identifies the kind.
type DefinitionSpec struct {
	Group    string              `json:"group"`
	Names    DefinitionNames     `json:"names"`
	Scope    string              `json:"scope"`
	Versions []DefinitionVersion `json:"versions"`
}

// DefinitionNames are the kind's names.
type DefinitionNames struct {
	Kind   string `json:"kind"`
	Plural string `json:"plural"`
}

// DefinitionVersion is one version of the kind.
type DefinitionVersion struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
}

// DefinitionStatus is what the API server makes of the CRD.
type DefinitionStatus struct {
	Conditions     []DefinitionCondition `json:"conditions,omitempty"`
	StoredVersions []string              `json:"storedVersions,omitempty"`
}

// DefinitionCondition is a condition of a CRD; it is older than metav1.Condition and has fewer rules.
type DefinitionCondition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
}

// DefinitionList is a list of Definitions.
type DefinitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Definition `json:"items"`
}

// groupVersionKind is the kind that a Definition stands for.
var groupVersionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// AddToScheme makes a scheme decode CRDs as Definitions. It must be a scheme of its own, without apiextensions' types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(groupVersionKind, &Definition{})
	s.AddKnownTypeWithName(groupVersionKind.GroupVersion().WithKind(groupVersionKind.Kind+"List"), &DefinitionList{})
	metav1.AddToGroupVersion(s, groupVersionKind.GroupVersion())
	return nil
}

// DeepCopyObject implements runtime.Object.
func (d *Definition) DeepCopyObject() runtime.Object {
	out := *d
	d.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Versions = append([]DefinitionVersion(nil), d.Spec.Versions...)
	out.Status.Conditions = append([]DefinitionCondition(nil), d.Status.Conditions...)
	out.Status.StoredVersions = append([]string(nil), d.Status.StoredVersions...)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *DefinitionList) DeepCopyObject() runtime.Object {
	out := &DefinitionList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy(), Items: make([]Definition, len(l.Items))}
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Definition)
	}
	return out
}

// Served says whether the API server serves the kind.
func (d *Definition) Served() bool {
	c := d.condition("Established")
	return c != nil && c.Status == metav1.ConditionTrue
}

// Same says whether two states of a CRD are the same to an Applier.
func (d *Definition) Same(other *Definition) bool {
	return d.Served() == other.Served() && d.refusal() == other.refusal() &&
		d.Annotations[digestAnnotation] == other.Annotations[digestAnnotation] &&
		d.DeletionTimestamp.IsZero() == other.DeletionTimestamp.IsZero()
}

// refusal is why the API server does not accept the CRD's names; empty when it does, or has not looked yet.
func (d *Definition) refusal() string {
	if c := d.condition("NamesAccepted"); c != nil && c.Status == metav1.ConditionFalse {
		return c.Message
	}
	return ""
}

// condition finds a condition by its type.
func (d *Definition) condition(conditionType string) *DefinitionCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == conditionType {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}
