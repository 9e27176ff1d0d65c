package chartgen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// contents is what values.yaml, its schema and the README tell of a provider.
type contents struct {
	Provider    bundle.Provider
	Version     string // with "v"
	Contract    string
	Namespace   string     // the provider's default namespace
	Variables   []variable // but for those that only CRDs use: they have their defaults for good
	Deployments []deployment
	Images      []string // sorted
	CRDs        []crd    // in the order of the components
	// ConversionWebhooks is how many CRDs have one.
	ConversionWebhooks int
	RequiredKinds      []string
	Templates, Classes []string // file names of cluster templates and ClusterClasses
}

// variable is a variable of the provider, and where it is used.
type variable struct {
	expr.Variable
	Uses []string
}

// deployment is a Deployment as published, with its containers and init containers.
type deployment struct {
	Name       string
	spec       map[string]any
	containers []map[string]any
}

// crd is a CustomResourceDefinition for people.
type crd struct {
	Name, Kind, Scope string
	// Versions are told like "v1beta2 (stored), v1beta1, v1alpha4 (not served)".
	Versions string
}

func newContents(b *bundle.Bundle, components *bundle.Components, contract string) *contents {
	c := &contents{
		Provider:           b.Provider,
		Version:            "v" + strings.TrimPrefix(b.Version, "v"),
		Contract:           contract,
		Namespace:          components.Namespace,
		ConversionWebhooks: conversionWebhooks(components),
		RequiredKinds:      requiredKinds(components),
	}

	uses := variableUses(components)
	for _, v := range components.Variables {
		if len(uses[v.Name]) > 0 {
			c.Variables = append(c.Variables, variable{Variable: v, Uses: uses[v.Name]})
		}
	}

	for i := range components.Documents {
		doc := &components.Documents[i]
		if doc.IsCRD() {
			c.CRDs = append(c.CRDs, newCRD(doc.Object.Object))
			continue
		}

		c.Images = append(c.Images, ObjectImages(doc.Object.Object)...)
		if doc.Object.GetKind() == "Deployment" {
			spec, _, _ := unstructured.NestedMap(doc.Object.Object, "spec")
			c.Deployments = append(
				c.Deployments,
				deployment{Name: doc.Object.GetName(), spec: spec, containers: containers(doc.Object.Object)},
			)
		}
	}

	slices.Sort(c.Images)
	c.Images = slices.Compact(c.Images)

	for _, t := range b.Templates {
		if strings.HasPrefix(t.Name, "clusterclass-") {
			c.Classes = append(c.Classes, t.Name)
		} else {
			c.Templates = append(c.Templates, t.Name)
		}
	}

	return c
}

// required are the variables without a default.
func (c *contents) required() []string {
	var names []string

	for _, v := range c.Variables {
		if v.Required {
			names = append(names, v.Name)
		}
	}

	return names
}

// ObjectImages are the images of the containers and init containers in the pods that an object
// makes, in order.
func ObjectImages(object map[string]any) []string {
	var images []string

	for _, container := range containers(object) {
		if image, ok := container["image"].(string); ok && image != "" {
			images = append(images, image)
		}
	}

	return images
}

// containers are the init containers and containers in the pods that an object makes, in order.
func containers(object map[string]any) []map[string]any {
	return maplist(podSpec(object), "initContainers", "containers")
}

// podSpec is the spec of the pods that an object makes; nil when it makes none.
func podSpec(object map[string]any) map[string]any {
	fields := []string{"spec", "template", "spec"}

	switch object["kind"] {
	case "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job":
	case "CronJob":
		fields = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case "Pod":
		fields = []string{"spec"}
	default:
		return nil
	}

	spec, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	pod, _ := spec.(map[string]any)

	return pod
}

// maplist joins the fields of an object that are lists of objects.
func maplist(object map[string]any, fields ...string) []map[string]any {
	var all []map[string]any

	for _, field := range fields {
		list, _ := object[field].([]any)
		for _, item := range list {
			if item, ok := item.(map[string]any); ok {
				all = append(all, item)
			}
		}
	}

	return all
}

func newCRD(object map[string]any) crd {
	text := func(fields ...string) string { s, _, _ := unstructured.NestedString(object, fields...); return s }
	spec, _, _ := unstructured.NestedFieldNoCopy(object, "spec")
	fields, _ := spec.(map[string]any)
	published := maplist(fields, "versions")

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
		Name:     text("metadata", "name"),
		Kind:     text("spec", "names", "kind"),
		Scope:    text("spec", "scope"),
		Versions: strings.Join(versions, ", "),
	}
}

// conversionWebhooks counts the CRDs that call a webhook of the provider to convert objects.
func conversionWebhooks(components *bundle.Components) int {
	count := 0

	for i := range components.Documents {
		if doc := &components.Documents[i]; doc.IsCRD() {
			if _, found, _ := unstructured.NestedFieldNoCopy(doc.Object.Object, conversionService...); found {
				count++
			}
		}
	}

	return count
}

// names are the names of the containers, sorted.
func (d deployment) names() []string {
	set := map[string]bool{}
	for _, c := range d.containers {
		set[fmt.Sprint(c["name"])] = true
	}

	return slices.Sorted(maps.Keys(set))
}
