package compat

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// field is a field below spec that has a value of its own.
type field struct {
	path, kind string
}

// fieldList holds what is known about cluster-api-operator's fields.
type fieldList struct {
	fields   []field
	required map[string]bool // paths
}

// readFields reads the list of fields.
func readFields() fieldList {
	GinkgoHelper()

	content, err := os.ReadFile("testdata/cluster-api-operator-fields.txt")
	Expect(err).NotTo(HaveOccurred())

	s := fieldList{required: map[string]bool{}}

	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}

		s.required[words[0]] = len(words) > 2

		if words[1] != "object" {
			s.fields = append(s.fields, field{path: words[0], kind: words[1]})
		}
	}

	return s
}

// only returns the part of an example that consists of one field, the key and index of which are in its path, and of
// what is required beside it. At is the path of the example. It returns nil if the example lacks the field.
func (s fieldList) only(example any, at, path string) any {
	if path == "" {
		return example
	}

	object, isObject := example.(map[string]any)
	name, rest, _ := strings.Cut(path, ".")
	key, isList := strings.CutSuffix(name, "[]")

	if !isObject {
		return nil
	}

	if key == "*" {
		for key, value := range object {
			return map[string]any{key: s.only(value, at+"*.", rest)}
		}
	}

	var part any

	switch items, _ := object[key].([]any); {
	case isList:
		for _, item := range items {
			if found := s.only(item, at+name+".", rest); found != nil && part == nil {
				part = []any{found}
			}
		}
	case object[key] != nil:
		part = s.only(object[key], at+name+".", rest)
	}

	if part == nil {
		return nil
	}

	result := map[string]any{key: part}

	for sibling, value := range object {
		if sibling != key && s.required[at+sibling] {
			result[sibling] = value
		}
	}

	return result
}

// readExample reads the example with a value for each field, for a site.
func readExample(s *site) map[string]any {
	GinkgoHelper()

	content, err := os.ReadFile("testdata/cluster-api-operator-example.yaml")
	Expect(err).NotTo(HaveOccurred())

	text := strings.NewReplacer("$REGISTRY", "http://"+s.registry, "$SERVER", s.releases.URL()).Replace(string(content))

	var example map[string]any
	Expect(yaml.Unmarshal([]byte(text), &example)).To(Succeed())

	return example
}

// describeFields describes that each field of cluster-api-operator is accepted, and has its effect.
func describeFields(s **site) {
	It("accept each field", func(ctx SpecContext) {
		known, example := readFields(), readExample(*s)
		Expect(known.fields).To(HaveLen(267))

		strict := client.NewDryRunClient(client.WithFieldValidation(*s, metav1.FieldValidationStrict))

		for _, f := range known.fields {
			spec := known.only(example, "", f.path)
			Expect(spec).NotTo(BeNil(), "the example lacks %s", f.path)
			Expect(typeOf(spec, f.path)).To(Equal(strings.ReplaceAll(f.kind, "quantity", "string")), f.path)

			p := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			p.SetGroupVersionKind(v1alpha2.InfrastructureProviderType.GroupVersionKind())
			p.SetNamespace("default")
			p.SetName("field")
			Expect(strict.Apply(ctx, client.ApplyConfigurationFromUnstructured(p), client.FieldOwner("compat"))).
				To(Succeed(), f.path)
		}
	})

	It("give each field its effect", func(ctx SpecContext) {
		known, example := readFields(), readExample(*s)
		(*s).createFields(ctx, example)

		deployments := map[string]map[string]any{}

		for _, f := range known.fields {
			if withoutEffect[below("manager", f.path)] {
				continue
			}

			e := effectOf(f.path, known.only(example, "", f.path))

			if deployments[e.deployment] == nil {
				deployments[e.deployment] = (*s).deployment(ctx, e.deployment)
			}

			Expect(contains(deployments[e.deployment], e.part)).To(BeTrue(), "%s: Deployment %s lacks %v in %v", f.path,
				e.deployment, e.part, deployments[e.deployment])
		}
	})

	It("report fields of managers that have no effect", func(ctx SpecContext) {
		for _, field := range []string{"gracefulShutDown", "controller.cacheSyncTimeout", "controller.recoverPanic"} {
			Eventually((*s).events(ctx, "fields")).Should(ContainElement(
				ContainSubstring(field + " is ignored: Cluster API's managers have no flag for it")))
		}
	})
}

// typeOf returns the type of the value at a path, in the words of the list of fields.
func typeOf(value any, path string) string {
	for path != "" {
		var name string

		name, path, _ = strings.Cut(path, ".")
		key, isList := strings.CutSuffix(name, "[]")
		value = member(value, key)

		if isList {
			value = value.([]any)[0]
		}
	}

	switch v := value.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		return "integer"
	case []any:
		return "list-of-" + typeOf(v[0], "")
	default:
		return "map-of-" + typeOf(member(v, "*"), "")
	}
}

// member returns a value of an object; any one if the key is *.
func member(object any, key string) any {
	for name, value := range object.(map[string]any) {
		if key == "*" || key == name {
			return value
		}
	}

	return nil
}
