package apply

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// These are a Service and its fields, as the API server tells them: lists with keys or of a set, and others.
const (
	liveService = `
metadata: {annotations: {example.com/a: b}, finalizers: [a]}
spec:
  clusterIPs: [10.0.0.1]
  selector: {app: a}
  ports: [{port: 53, protocol: UDP, name: dns}, {port: 53, protocol: TCP, targetPort: 1}]
`
	liveFields = `{"f:metadata": {"f:annotations": {"f:example.com/a": {}}, "f:finalizers": {".": {}, "v:\"a\"": {}}},
		"f:spec": {"f:clusterIPs": {}, "f:selector": {}, "f:ports": {".": {},
			"k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}, "f:name": {}},
			"k:{\"port\":53,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}}}}`
)

func fieldsFrom(t *testing.T, text string) *fieldpath.Set {
	t.Helper()

	fields := &fieldpath.Set{}
	NewWithT(t).Expect(fields.FromJSON(strings.NewReader(text))).To(Succeed())

	return fields
}

func TestNamedPath(t *testing.T) {
	tcp := fieldpath.KeyByFields("port", 53, "protocol", "TCP")

	for named, want := range map[string]fieldpath.Path{
		"spec":                                   fieldpath.MakePathOrDie("spec"),
		"spec.type":                              fieldpath.MakePathOrDie("spec", "type"),
		"spec.ports[1].targetPort":               fieldpath.MakePathOrDie("spec", "ports", tcp, "targetPort"),
		"spec.ports[1].nodePort":                 fieldpath.MakePathOrDie("spec", "ports", tcp, "nodePort"),
		"spec.ports[2].nodePort":                 fieldpath.MakePathOrDie("spec", "ports"),
		"spec.clusterIPs[0]":                     fieldpath.MakePathOrDie("spec", "clusterIPs"),
		"spec.selector[app]":                     fieldpath.MakePathOrDie("spec", "selector", "app"),
		"metadata.annotations[example.com/a]":    fieldpath.MakePathOrDie("metadata", "annotations", "example.com/a"),
		"metadata.annotations[example.com/a].no": fieldpath.MakePathOrDie("metadata", "annotations", "example.com/a", "no"),
		"":                                       {},
	} {
		found := namedPath(named, parse(t, liveService).Object, fieldsFrom(t, liveFields))
		NewWithT(t).Expect(found.String()).To(Equal(want.String()), named)
	}
}

func TestPointerOf(t *testing.T) {
	g := NewWithT(t)
	o := parse(t, liveService).Object
	tcp := fieldpath.KeyByFields("port", 53, "protocol", "TCP")

	g.Expect(pointerOf(fieldpath.MakePathOrDie("spec", "ports", tcp, "targetPort"), o)).To(
		Equal("/spec/ports/1/targetPort"))
	g.Expect(pointerOf(fieldpath.MakePathOrDie("metadata", "annotations", "example.com/a"), o)).To(
		Equal("/metadata/annotations/example.com~1a"))
}

// TestOverlaid checks that lists with keys, and sets, are merged, and that other lists and objects without fields of
// their own are replaced.
func TestOverlaid(t *testing.T) {
	g := NewWithT(t)

	g.Expect(overlaid(parse(t, liveService).Object, parse(t, `
metadata: {finalizers: [b, a]}
spec:
  clusterIPs: []
  selector: {app: b, other: c}
  type: NodePort
  ports: [{port: 80}, {port: 53, protocol: TCP, nodePort: 2}]
`).Object, fieldsFrom(t, liveFields))).To(Equal(parse(t, `
metadata: {annotations: {example.com/a: b}, finalizers: [a, b]}
spec:
  clusterIPs: []
  selector: {app: b, other: c}
  type: NodePort
  ports:
  - {port: 53, protocol: UDP, name: dns}
  - {port: 53, protocol: TCP, targetPort: 1, nodePort: 2}
  - {port: 80}
`).Object))
}
