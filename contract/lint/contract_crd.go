package lint

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// contractVersion matches the versions of contracts.
var contractVersion = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)

// isContractVersion reports whether a text is the version of a contract, such as v1beta2.
func isContractVersion(text string) bool { return contractVersion.MatchString(text) }

// crd is a CustomResourceDefinition of the components.
type crd struct {
	doc                 *bundle.Document
	Name                string
	Labels              map[string]string
	Group, Kind, Plural string
	// Spec is the content of spec.
	Spec map[string]any
	// Resource is the resource of a contract that the CRD defines or, if IsTemplate is true, whose
	// template it defines. It is nil for other kinds.
	Resource   *resource
	IsTemplate bool
	// NameOnly reports whether nothing but its name suggests that a kind is the resource. Then the
	// requirements for its fields do not apply.
	NameOnly bool
	// HasTemplate reports whether the components have a template of the kind.
	HasTemplate bool
}

// newCRD returns a CRD without its resource, which assignResources sets.
func newCRD(doc *bundle.Document) *crd {
	spec := bundle.NestedMap(doc.Object.Object, "spec")

	return &crd{
		doc:    doc,
		Name:   doc.Object.GetName(),
		Labels: doc.Object.GetLabels(),
		Group:  bundle.NestedString(spec, "group"),
		Kind:   bundle.NestedString(spec, "names", "kind"),
		Plural: bundle.NestedString(spec, "names", "plural"),
		Spec:   spec,
	}
}

// IsReferenced reports whether Cluster API's core refers to objects of the kind.
func (c *crd) IsReferenced() bool { return c.Resource != nil && !c.Resource.External }

// IsClusterScoped reports whether objects of the kind have no namespace.
func (c *crd) IsClusterScoped() bool {
	return bundle.NestedString(c.Spec, "scope") == "Cluster"
}

// Converts reports whether the API server needs to convert objects of the kind.
func (c *crd) Converts() bool { return len(bundle.NestedMaps(c.Spec, "versions")) > 1 }

// ConversionService returns the name of the Service that converts objects of the kind, or "".
func (c *crd) ConversionService() string {
	return bundle.NestedString(c.Spec, "conversion", "webhook", "clientConfig", "service", "name")
}

// Implementation returns the contract by which Cluster API's core uses the objects of a provider that
// promises a contract, and the name of their API version. Both are empty if the labels list none. Kinds
// that core does not use have no labels; of these, it is the newest version that is served.
func (c *crd) Implementation(promised string) (implemented, version string) {
	if c.Resource.External && slices.Contains(contract.Versions, promised) {
		return promised, c.newestServed()
	}

	return contract.Implementation(c.Labels, promised)
}

func (c *crd) newestServed() string {
	newest := ""

	for _, v := range bundle.NestedMaps(c.Spec, "versions") {
		name := bundle.NestedString(v, "name")
		if v["served"] == true && (newest == "" || version.CompareKubeAwareVersionStrings(name, newest) > 0) {
			newest = name
		}
	}

	return newest
}

// hasContract reports whether a CRD has the label of any contract.
func (c *crd) hasContract() bool {
	for key := range c.Labels {
		if labeled, ok := strings.CutPrefix(key, contract.LabelPrefix); ok && isContractVersion(labeled) {
			return true
		}
	}

	return false
}

// VersionNames returns the names of all API versions.
func (c *crd) VersionNames() map[string]bool {
	names := map[string]bool{}
	for _, v := range bundle.NestedMaps(c.Spec, "versions") {
		names[bundle.NestedString(v, "name")] = true
	}

	return names
}

// crdVersion is an API version of a CRD.
type crdVersion struct {
	Name   string
	Served bool

	hasTemplate bool
	definition  map[string]any
}

// Version returns an API version, or nil if it does not exist.
func (c *crd) Version(name string) *crdVersion {
	versions := bundle.NestedMaps(c.Spec, "versions")

	i := slices.IndexFunc(versions, func(v map[string]any) bool { return bundle.NestedString(v, "name") == name })
	if i < 0 {
		return nil
	}

	return &crdVersion{
		Name: name, Served: versions[i]["served"] != false, hasTemplate: c.HasTemplate, definition: versions[i],
	}
}

// Subresource returns the definition of a subresource, or nil if there is none.
func (v *crdVersion) Subresource(name string) map[string]any {
	return bundle.NestedMap(v.definition, "subresources", name)
}

// Property returns the schema of a field, or nil if there is no such field. It is not known whether
// there is one if unknown fields are allowed, or if the CRD has no schema.
func (v *crdVersion) Property(path string) (schema map[string]any, known bool) {
	schema = bundle.NestedMap(v.definition, "schema", "openAPIV3Schema")
	if schema == nil {
		return nil, false
	}

	for name := range strings.SplitSeq(path, ".") {
		next := bundle.NestedMap(schema, "properties", name)
		if next == nil {
			return nil, !allowsUnknown(schema)
		}

		schema = next
	}

	return schema, true
}

// Has reports whether a version has a field.
func (v *crdVersion) Has(path string) bool {
	schema, _ := v.Property(path)
	return schema != nil
}

// allowsUnknown reports whether the API server keeps fields that a schema does not define.
func allowsUnknown(schema map[string]any) bool {
	return schema["x-kubernetes-preserve-unknown-fields"] == true
}
