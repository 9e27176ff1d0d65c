package e2e

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// tiny is an infrastructure provider with one Deployment, one ServiceAccount and one CRD. Its
// source is an uncompressed ConfigMap. Every scenario uses its own name, since a cluster can have
// each provider only once.
type tiny struct {
	name, version        string
	components, metadata string
}

func newTiny(name, version string) tiny {
	kind := tiny{name: name}.kind()

	return tiny{name: name, version: version, metadata: tinyMetadata, components: fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata:
  name: %[1]s-system
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[3]ss.infrastructure.cluster.x-k8s.io
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[3]ss, singular: %[3]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: %[1]s-manager
  namespace: %[1]s-system
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s-controller-manager
  namespace: %[1]s-system
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      serviceAccountName: %[1]s-manager
      terminationGracePeriodSeconds: 0
      containers:
      - name: manager
        image: registry.example.com/%[1]s:%[4]s
        args: ["--level=${TINY_LEVEL:=info}"]
`, name, kind, strings.ToLower(kind), version)}
}

const tinyMetadata = `
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta2}
- {major: 1, minor: 1, contract: v1beta2}
- {major: 1, minor: 2, contract: v1beta2}
`

func (t tiny) labels() map[string]string { return map[string]string{"provider": t.name} }

func (t tiny) namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.name}}
}

func (t tiny) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: t.version, Labels: t.labels()},
		Data: map[string]string{
			v1alpha2.ConfigMapMetadataKey:   t.metadata,
			v1alpha2.ConfigMapComponentsKey: t.components,
		},
	}
}

func (t tiny) resource() *v1alpha2.InfrastructureProvider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: t.name}}
	p.Spec.Version = t.version
	p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Selector: &metav1.LabelSelector{MatchLabels: t.labels()}}

	return p
}

// kind, plural and crd return the names of the kind that the provider's CRD defines.
func (t tiny) kind() string   { return "Tiny" + strings.ReplaceAll(strings.ToLower(t.name), "-", "") }
func (t tiny) plural() string { return strings.ToLower(t.kind()) + "s" }
func (t tiny) crd() string    { return t.plural() + ".infrastructure.cluster.x-k8s.io" }

// inVersion returns an empty object of the provider's kind.
func (t tiny) inVersion(version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(
		schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: version, Kind: t.kind()},
	)

	return o
}

// object returns an object of the provider's kind in the namespace default.
func (t tiny) object(version, name string) *unstructured.Unstructured {
	o := t.inVersion(version)
	o.Object["spec"] = map[string]any{"name": name}
	o.SetNamespace("default")
	o.SetName(name)

	return o
}
