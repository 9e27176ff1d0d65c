// Package object identifies Kubernetes objects and describes them in conditions, events, errors and logs: their names,
// lists of them, and errors of the API server without the values that these quote.
package object

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key identifies an object by its group, version, kind, namespace and name.
type Key struct {
	schema.GroupVersionKind

	Namespace string
	Name      string
}

// keyed is an object that knows its kind, such as an unstructured one. The kind of a typed object
// that a client has read is often empty.
type keyed interface {
	GetObjectKind() schema.ObjectKind
	GetNamespace() string
	GetName() string
}

// KeyOf returns the key of an object.
func KeyOf(o keyed) Key {
	return Key{GroupVersionKind: o.GetObjectKind().GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// IsSame reports whether two keys identify the same object, in any versions of its API.
func (k Key) IsSame(other Key) bool {
	return k.GroupKind() == other.GroupKind() && k.Namespace == other.Namespace && k.Name == other.Name
}

// String returns the key as users read it, without group and version: "Deployment ns/manager".
func (k Key) String() string { return Name(k.Kind, k.Namespace, k.Name) }

// Name returns "Kind namespace/name", or "Kind name" for an object without a namespace.
func Name(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}

	return kind + " " + namespace + "/" + name
}
