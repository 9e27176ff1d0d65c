package conformance

import (
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/test/bed"
)

// topology is a Cluster and those of its objects whose kinds the providers define.
type topology struct {
	cluster *unstructured.Unstructured
	// referenced are the control plane and the infrastructure that the Cluster refers to, and that it must own.
	referenced []*unstructured.Unstructured
	// others are what these refer to, such as templates.
	others []*unstructured.Unstructured
	// resources are the names of the kinds in requests.
	resources map[schema.GroupKind]string
}

// readTopology reads the objects in a file.
func readTopology(path string, providers []*bundle.Components) (*topology, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}

	file, err := bundle.ParseComponents(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	t := &topology{cluster: findCluster(file), resources: definedResources(providers)}
	if t.cluster == nil {
		return nil, fmt.Errorf("%s contains no Cluster; use the output of clusterctl generate cluster", path)
	}

	for _, doc := range file.Documents {
		switch o := doc.Object; {
		case t.resources[o.GroupVersionKind().GroupKind()] == "":
		case t.refersTo(o):
			t.referenced = append(t.referenced, o)
		default:
			t.others = append(t.others, o)
		}
	}

	if len(t.referenced) == 0 {
		return nil, fmt.Errorf("%s contains neither a control plane nor infrastructure of Cluster %s that is of a kind of "+
			"the provider; use a template for this provider", path, t.cluster.GetName())
	}

	return t, nil
}

// findCluster returns the Cluster of a file, nil if there is none.
func findCluster(file *bundle.Components) *unstructured.Unstructured {
	for _, doc := range file.Documents {
		if gk := doc.Object.GroupVersionKind().GroupKind(); gk.Group == clusterv1.GroupVersion.Group && gk.Kind == "Cluster" {
			return doc.Object
		}
	}

	return nil
}

// definedResources returns the resources that the CRDs of providers define, by kind.
func definedResources(providers []*bundle.Components) map[schema.GroupKind]string {
	resources := map[schema.GroupKind]string{}

	for _, components := range providers {
		for _, doc := range components.Documents {
			if doc.IsCRD() {
				group, _, _ := unstructured.NestedString(doc.Object.Object, "spec", "group")
				kind, _, _ := unstructured.NestedString(doc.Object.Object, "spec", "names", "kind")
				plural, _, _ := unstructured.NestedString(doc.Object.Object, "spec", "names", "plural")
				resources[schema.GroupKind{Group: group, Kind: kind}] = plural
			}
		}
	}

	return resources
}

// refersTo reports whether the Cluster refers to an object of the provider.
func (t *topology) refersTo(o *unstructured.Unstructured) bool {
	for _, field := range []string{"controlPlaneRef", "infrastructureRef"} {
		kind, _, _ := unstructured.NestedString(t.cluster.Object, "spec", field, "kind")
		name, _, _ := unstructured.NestedString(t.cluster.Object, "spec", field, "name")

		if o.GetKind() == kind && o.GetName() == name {
			return true
		}
	}

	return false
}

// contains reports whether a request concerns an object of the topology.
func (t *topology) contains(r bed.Request) bool {
	for _, o := range slices.Concat(t.referenced, t.others) {
		gk := o.GroupVersionKind().GroupKind()
		if r.Group == gk.Group && r.Resource == t.resources[gk] && r.Name == o.GetName() {
			return true
		}
	}

	return false
}
