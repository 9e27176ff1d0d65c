package chartgen

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// summary is what Chart.yaml, values.yaml, its schema, and the README need to know about a
// provider. The exported fields and methods are used by the README's template.
type summary struct {
	Provider  bundle.Provider
	Version   string // with "v"
	Contract  string
	Namespace string // the provider's default namespace
	// Variables are the variables that users can set. They do not include those that only CRDs use:
	// Helm does not render CRDs, so these variables always have their defaults.
	Variables          []variable
	Deployments        []deployment
	Images             []string // sorted
	CRDs               []crd    // in the order of the components
	ConversionWebhooks int      // the number of CRDs with a conversion webhook
	// RequiredKinds are the kinds of objects that neither Kubernetes nor the provider's CRDs
	// define, as Kind.version.group, sorted.
	RequiredKinds []string
	Templates     []flavor // cluster templates
	Classes       []flavor // ClusterClasses

	// namespace is the Namespace as published, or empty if there is none.
	namespace string
	scopes    bundle.Scopes
}

// variable is a variable of the provider and the places where it is used.
type variable struct {
	expr.Variable
	Uses []string
}

// deployment is a Deployment as published.
type deployment struct {
	Name           string
	ContainerNames []string // of containers and init containers, sorted

	spec       map[string]any
	containers []map[string]any // init containers first
}

// crd describes a CustomResourceDefinition in the README.
type crd struct {
	Name, Kind, Scope string
	// Versions lists the API versions, newest first, for example
	// "v1beta2 (stored), v1beta1, v1alpha4 (not served)".
	Versions string
}

func newSummary(b *bundle.Bundle, components *bundle.Components, contract string) *summary {
	s := &summary{
		Provider:  b.Provider,
		Version:   "v" + strings.TrimPrefix(b.Version, "v"),
		Contract:  contract,
		Namespace: components.Namespace,
		scopes:    bundle.Scopes{},
	}

	uses := map[string][]string{}
	kinds := make([]schema.GroupVersionKind, 0, len(components.Documents))

	for i := range components.Documents {
		doc := &components.Documents[i]
		kinds = append(kinds, doc.Object.GroupVersionKind())

		switch {
		case doc.IsNamespace():
			s.namespace = doc.Source
		case doc.IsCRD():
			s.addCRD(doc.Object.Object)
			continue // CRDs contain no images, and their variables cannot be set
		}

		s.addWorkload(doc.Object)
		addVariableUses(uses, doc)
	}

	slices.Sort(s.Images)
	s.Images = slices.Compact(s.Images)
	s.RequiredKinds = s.scopes.RequiredKinds(kinds)
	s.setVariables(components.Variables, uses)
	s.setTemplates(b.Templates)

	return s
}

func (s *summary) addCRD(object map[string]any) {
	s.CRDs = append(s.CRDs, newCRD(object))
	s.scopes.Add(object)

	if bundle.HasConversionWebhook(object) {
		s.ConversionWebhooks++
	}
}

// addWorkload collects the images of an object and, if it is a Deployment, the Deployment itself.
func (s *summary) addWorkload(object *unstructured.Unstructured) {
	s.Images = append(s.Images, bundle.Images(object.Object)...)

	if object.GetKind() != "Deployment" {
		return
	}

	d := deployment{
		Name:       object.GetName(),
		spec:       bundle.NestedMap(object.Object, "spec"),
		containers: bundle.Containers(object.Object),
	}
	for _, container := range d.containers {
		d.ContainerNames = append(d.ContainerNames, fmt.Sprint(container["name"]))
	}

	slices.Sort(d.ContainerNames)
	d.ContainerNames = slices.Compact(d.ContainerNames)
	s.Deployments = append(s.Deployments, d)
}

func (s *summary) setVariables(variables []expr.Variable, uses map[string][]string) {
	for _, v := range variables {
		if len(uses[v.Name]) > 0 {
			s.Variables = append(s.Variables, variable{Variable: v, Uses: uses[v.Name]})
		}
	}
}

func (s *summary) setTemplates(files []bundle.File) {
	for _, f := range files {
		if bundle.IsClusterClass(f.Name) {
			s.Classes = append(s.Classes, newFlavor(f))
		} else {
			s.Templates = append(s.Templates, newFlavor(f))
		}
	}
}

// required returns the names of the variables without a default.
func (s *summary) required() []string {
	var names []string

	for _, v := range s.Variables {
		if v.Required {
			names = append(names, v.Name)
		}
	}

	return names
}

func newCRD(object map[string]any) crd {
	published := bundle.NestedMaps(object, "spec", "versions")

	versions := make([]string, 0, len(published))
	for _, v := range published {
		version := fmt.Sprint(v["name"])
		if v["storage"] == true {
			version += " (stored)"
		}

		if v["served"] != true {
			version += " (not served)"
		}

		versions = append(versions, version)
	}

	slices.Reverse(versions)

	return crd{
		Name:     bundle.NestedString(object, "metadata", "name"),
		Kind:     bundle.NestedString(object, "spec", "names", "kind"),
		Scope:    bundle.NestedString(object, "spec", "scope"),
		Versions: strings.Join(versions, ", "),
	}
}
