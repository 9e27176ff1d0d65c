package audit

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// role is what an object is for the object that refers to it.
type role string

// The roles in the contracts.
const (
	infraCluster    role = "InfraCluster"
	controlPlane    role = "ControlPlane"
	infraMachine    role = "InfraMachine"
	infraPool       role = "InfraMachinePool"
	bootstrapConfig role = "BootstrapConfig"
	// machineTemplate is the template of a control plane's Machines. Nothing owns it on its behalf.
	machineTemplate role = "machine template"
)

// link is a reference of one of core's objects, or of a control plane, to a provider's object.
type link struct {
	from *object
	// field is the path of the reference.
	field []string
	role  role
	to    objectKey
	// target is the object that it refers to; nil if there is none.
	target *object
}

// owned reports whether core sets an owner reference from the target to the object that refers to it.
func (l link) owned() bool { return l.role != machineTemplate }

// path returns the path of the reference, such as spec.infrastructureRef.
func (l link) path() string { return strings.Join(l.field, ".") }

// coreReferences are the references in core's kinds.
var coreReferences = map[string][]struct {
	role  role
	field []string
}{
	"Cluster": {
		{infraCluster, []string{"spec", "infrastructureRef"}},
		{controlPlane, []string{"spec", "controlPlaneRef"}},
	},
	"Machine": {
		{infraMachine, []string{"spec", "infrastructureRef"}},
		{bootstrapConfig, []string{"spec", "bootstrap", "configRef"}},
	},
	"MachinePool": {
		{infraPool, []string{"spec", "template", "spec", "infrastructureRef"}},
		{bootstrapConfig, []string{"spec", "template", "spec", "bootstrap", "configRef"}},
	},
}

// templateReferences are where a control plane refers to the template of its Machines: in v1beta1 and
// in v1beta2.
var templateReferences = [][]string{
	{"spec", "machineTemplate", "infrastructureRef"},
	{"spec", "machineTemplate", "spec", "infrastructureRef"},
}

func (g *graph) addLinks() {
	for _, o := range g.objects {
		if o.kind.Group != clusterv1.GroupVersion.Group {
			continue
		}

		for _, reference := range coreReferences[o.kind.Kind] {
			g.addLink(o, reference.role, reference.field)
		}
	}

	for _, l := range g.linked(controlPlane) {
		for _, field := range templateReferences {
			g.addLink(l.target, machineTemplate, field)
		}
	}
}

// addLink adds the reference in a field, if there is one.
func (g *graph) addLink(from *object, role role, field []string) {
	ref := bundle.NestedMap(from.Object, field...)
	text := func(name string) string { return bundle.NestedString(ref, name) }

	if text("name") == "" {
		return
	}

	l := link{from: from, field: field, role: role}
	l.to.Kind = text("kind")
	l.to.Name = text("name")
	l.to.Group = text("apiGroup") // v1beta2; v1beta1 has the apiVersion instead

	if l.to.Group == "" {
		gv, _ := schema.ParseGroupVersion(text("apiVersion"))
		l.to.Group = gv.Group
	}

	l.to.Namespace = from.GetNamespace()
	if namespace := text("namespace"); namespace != "" {
		l.to.Namespace = namespace
	}

	l.target = g.byKey[l.to]
	g.links = append(g.links, l)
	g.targets[target{from, role}] = l.target
}

// linked returns the links of a role whose target exists.
func (g *graph) linked(roles ...role) []link {
	var found []link

	for _, l := range g.links {
		for _, r := range roles {
			if l.role == r && l.target != nil {
				found = append(found, l)
			}
		}
	}

	return found
}

// of returns the object in a role of a Cluster or Machine; nil if there is none.
func (g *graph) of(from *object, role role) *object {
	return g.targets[target{from, role}]
}

// target identifies a reference of an object.
type target struct {
	from *object
	role role
}
