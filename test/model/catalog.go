package model

import (
	"slices"
	"time"
)

// Flaw is what is wrong with a version of the provider.
type Flaw string

// The flaws.
const (
	// None: the version works.
	None Flaw = ""
	// NeverHealthy: its manager does not become available.
	NeverHealthy Flaw = "never healthy"
	// Refused: the API server refuses one of its objects.
	Refused Flaw = "refused"
	// Unsafe: its CRD breaks objects that exist.
	Unsafe Flaw = "unsafe"
)

// Version is a version of the provider.
type Version struct {
	Name string
	// Contract of Cluster API that it implements.
	Contract string
	// Stored are the versions of its CRD, the storage version first. Its conversion webhook knows no
	// others.
	Stored []string
	// Extras are the names of its objects besides the manager's Deployment.
	Extras []string
	// Own are those of them that wait until the manager is healthy.
	Own  []string
	Flaw Flaw
}

// Catalog has all versions of the provider, in ascending order.
var Catalog = []Version{
	{Name: "v1.0.0", Contract: "v1beta1", Stored: []string{"v1"}, Extras: []string{"a", "b"}},
	{Name: "v1.1.0", Contract: "v1beta1", Stored: []string{"v1"}, Extras: []string{"b", "c"}, Own: []string{"c"}},
	{
		Name: "v1.2.0", Contract: "v1beta1", Stored: []string{"v1"}, Extras: []string{"b", "d"}, Own: []string{"d"},
		Flaw: NeverHealthy,
	},
	{Name: "v1.3.0", Contract: "v1beta1", Stored: []string{"v1"}, Extras: []string{"c", "e"}, Flaw: Refused},
	{
		Name: "v2.0.0", Contract: "v1beta2", Stored: []string{"v2", "v1"}, Extras: []string{"a", "c"}, Own: []string{"a"},
	},
	{Name: "v2.1.0", Contract: "v1beta2", Stored: []string{"v2", "v1"}, Extras: []string{"c", "d"}, Flaw: NeverHealthy},
	{Name: "v2.2.0", Contract: "v1beta2", Stored: []string{"v2", "v1"}, Extras: []string{"c", "e"}, Flaw: Refused},
	{Name: "v3.0.0", Contract: "v1beta2", Stored: []string{"v3", "v2", "v1"}, Extras: []string{"a"}, Flaw: Unsafe},
}

// Find returns a version of the catalog.
func Find(name string) Version {
	return Catalog[slices.IndexFunc(Catalog, func(v Version) bool { return v.Name == name })]
}

// Converts reports whether the managers of the version can convert objects that are stored in the
// given version.
func (v Version) Converts(stored string) bool { return slices.Contains(v.Stored, stored) }

// What the resource of a walk sets in spec.release.
const (
	Timeout = 10 * time.Second
	Retries = 3
)

// Manager is the name of the manager's Deployment among the objects.
const Manager = "manager"

// Wanted is what the resource asks for.
type Wanted struct {
	Version string
	Paused  bool
}

// Content is what a revision is created from.
type Content struct {
	Wanted

	// Secret is the number of the content of the Secret with the variables.
	Secret int
	// Registry is the number of the image registry that the operator's flags name.
	Registry int
}

// Object is what can be seen of an object. Fields that a kind does not have are zero.
type Object struct {
	Version          string
	Replicas         int
	Secret, Registry int
}

// Objects returns the objects of a revision, by name.
func (c Content) Objects() map[string]Object {
	manager := Object{Version: c.Version, Replicas: 1, Secret: c.Secret, Registry: c.Registry}
	if c.Paused {
		manager.Replicas = 0
	}

	objects := map[string]Object{Manager: manager}
	for _, extra := range Find(c.Version).Extras {
		objects[extra] = Object{Version: c.Version}
	}

	return objects
}
