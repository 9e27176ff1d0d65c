package typed

import (
	"os"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/test/testproviders"
)

// fitting are objects with most fields that providers use, and schemas within schemas.
var fitting = map[string]string{
	"CRD": `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.example.com, creationTimestamp: null, generation: 1, labels: {a: b}, annotations: {c: d}}
spec:
  group: example.com
  names: {categories: [a], kind: A, plural: as}
  scope: Namespaced
  preserveUnknownFields: false
  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: a, port: 443}}}}
  versions:
  - name: v1
    served: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas}}
    additionalPrinterColumns: [{name: Age, type: date, jsonPath: .metadata, priority: 1}]
    schema:
      openAPIV3Schema:
        type: object
        default: {a: [1]}
        required: [spec]
        additionalProperties: {type: string}
        dependencies: {a: [b], c: {type: string}}
        properties:
          spec: {type: string, maxLength: 3, minimum: 1.5, enum: [a, 1, null], x-kubernetes-validations: [{rule: r}]}
          list: {type: array, items: {properties: {a: {minLength: 3, items: {additionalProperties: true}}}}}
          lists: {type: array, items: [{type: string, dependencies: {a: [b]}}], x-kubernetes-list-map-keys: [a]}
          port: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true, nullable: true}
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
`,
	"Deployment": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, labels: {a: b}}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - {name: m, args: [a], ports: [{containerPort: 1}], resources: {limits: {}}, livenessProbe: {httpGet: {port: p}}}
      tolerations: [{effect: NoSchedule, tolerationSeconds: 1}]
      volumes: [{name: v, secret: {secretName: s, defaultMode: 420}}]
`,
}

// TestFits: where the types of values show it, no conversion is necessary, and otherwise one decides. So no
// object may fit that cannot be converted, whichever of its values is replaced, and by what.
func TestFits(t *testing.T) {
	for name, text := range fitting {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			object := &unstructured.Unstructured{}
			g.Expect(yaml.Unmarshal([]byte(text), &object.Object)).To(Succeed())
			g.Expect(fitsType(object)).To(BeTrue())

			accepted, doubtful := 0, 0

			replaceAll(object.Object, func(key string, value any) {
				if !fitsType(object) {
					doubtful++
					return
				}

				accepted++

				g.Expect(convert(object, types[object.GroupVersionKind()]())).To(Succeed(), "%s: %v", key, value)
			})

			g.Expect(accepted).To(BeNumerically(">", 100))
			g.Expect(doubtful).To(BeNumerically(">", 300))
		})
	}
}

// TestFitsProviders: no CRD of a real provider has to be converted.
func TestFitsProviders(t *testing.T) {
	files, err := testproviders.Glob(t, "*/*/*-components.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for _, file := range files {
		text, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		components, err := bundle.ParseComponents(text)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), file)

		for _, doc := range components.Documents {
			if doc.IsCRD() {
				NewWithT(t).Expect(fitsType(doc.Object)).To(BeTrue(), "%s: %s", file, &doc)
			}
		}
	}
}

// fitsType reports whether an object fits the type of its kind.
func fitsType(object *unstructured.Unstructured) bool {
	return fitsOf(reflect.TypeOf(types[object.GroupVersionKind()]()))(object.Object)
}

// replaceAll replaces each value in a map or list, one after the other, by values of all types, and adds keys to each
// map. It calls check after each change and reverts it.
func replaceAll(parent any, check func(key string, value any)) {
	others := []any{
		nil, "text", "", true, 1.0, 1.5, 1e12, int64(1), int64(1) << 40, []any{}, []any{nil}, []any{"text"},
		[]any{map[string]any{}}, map[string]any{}, map[string]any{"a": nil}, map[string]any{"a": "b"},
		map[string]any{"a": map[string]any{}},
		map[string]any{"type": "string"}, map[string]any{"type": 1.0}, map[string]any{"Type": 1.0},
	}

	switch parent := parent.(type) {
	case map[string]any:
		replaceFields(parent, others, check)
	case []any:
		for i, child := range parent {
			for _, other := range others {
				parent[i] = other
				check("an item", other)
			}

			parent[i] = child
			replaceAll(child, check)
		}
	}
}

func replaceFields(parent map[string]any, others []any, check func(key string, value any)) {
	keys := []string{"unknown", "Type", "TYPE", "MaxLength", "Items"}
	for key := range parent {
		keys = append(keys, key)
	}

	for _, key := range keys {
		child, found := parent[key]

		// Without these an object has no type.
		if key == "apiVersion" || key == "kind" {
			continue
		}

		for _, other := range others {
			parent[key] = other
			check(key, other)
		}

		delete(parent, key)

		if found {
			parent[key] = child
			replaceAll(child, check)
		}
	}
}
