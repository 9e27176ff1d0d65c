package chartgen_test

import (
	"cmp"
	_ "embed" // for the files in testdata
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/render"
)

// workloads are the components of a provider with all kinds of workloads.
//
//go:embed testdata/workloads.yaml
var workloads string

//go:embed testdata/values.yaml
var valuesCases []byte

// TestValues: each value changes its field, and the others stay as published.
func TestValues(t *testing.T) {
	var cases []struct {
		Name   string
		Values map[string]any
		Object string
		Want   map[string]any
	}
	NewWithT(t).Expect(yaml.UnmarshalStrict(valuesCases, &cases)).To(Succeed())
	NewWithT(t).Expect(cases).NotTo(BeEmpty())

	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			g := NewWithT(t)
			name := cmp.Or(c.Object, "Deployment/manager")

			objects, err := renderWith(c.Values)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(objects).To(HaveKey(name))
			g.Expect(c.Want).NotTo(BeEmpty())

			for path, want := range c.Want {
				got, err := yaml.Marshal(field(objects[name], path))
				g.Expect(err).NotTo(HaveOccurred())
				expected, err := yaml.Marshal(want)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(got).To(MatchYAML(expected), path)
			}
		})
	}
}

func deployment(settings string) string { return `{deployments: {manager: {` + settings + `}}}` }

func manager(settings string) string { return deployment(`containers: {manager: {` + settings + `}}`) }

// renderWith renders the workloads and returns the objects by kind and name.
func renderWith(values map[string]any) (map[string]map[string]any, error) {
	built, err := chartgen.Build(provider("odd", workloads))
	if err != nil {
		return nil, err
	}

	manifest, err := render.Manifest(built, targetNamespace, values)
	if err != nil {
		return nil, err
	}

	list, err := utilyaml.ToUnstructured([]byte(manifest))
	if err != nil {
		return nil, err
	}

	objects := map[string]map[string]any{}
	for _, o := range list {
		objects[o.GetKind()+"/"+o.GetName()] = o.Object
	}

	return objects, nil
}

// TestValuesOfNamesWithVariables: a Deployment whose name contains variables has the rendered name, and gets
// its values by the name that it has with the defaults, and with placeholder0 for variables without one.
func TestValuesOfNamesWithVariables(t *testing.T) {
	for published, key := range map[string]string{
		"${ODD}-manager":       "placeholder0-manager",
		"${ODD:=odd}-manager":  "odd-manager",
		"manager-${ODD:=long}": "manager-long",
	} {
		t.Run(published, func(t *testing.T) {
			g := NewWithT(t)

			built, err := chartgen.Build(provider("odd",
				strings.Replace(deploymentWith("args: []"), "name: manager}", `name: "`+published+`"}`, 1)))
			g.Expect(err).NotTo(HaveOccurred())

			manifest, err := render.Manifest(built, targetNamespace, map[string]any{
				"variables":   map[string]any{"ODD": "real"},
				"deployments": map[string]any{key: map[string]any{"replicas": 3}},
			})
			g.Expect(err).NotTo(HaveOccurred())

			objects, err := utilyaml.ToUnstructured([]byte(manifest))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(objects).To(HaveLen(1))
			g.Expect(objects[0].GetName()).To(ContainSubstring("real"))
			g.Expect(field(objects[0].Object, "spec.replicas")).To(BeEquivalentTo(3))
		})
	}
}

func TestVariablesOf(t *testing.T) {
	g := NewWithT(t)
	built, err := chartgen.Build(provider("odd",
		deploymentWith("args: ['--a=${B:=${A:=x}}']")+"---\napiVersion: v1\nkind: Secret\n"+
			"metadata: {name: credentials}\ndata: {key: \"${KEY}\"}\n"))
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(chartgen.VariablesOf(built, "Deployment", "manager")).To(Equal([]string{"A", "B"}))
	g.Expect(chartgen.VariablesOf(built, "Secret", "credentials")).To(Equal([]string{"KEY"}))
	g.Expect(chartgen.VariablesOf(built, "Secret", "manager")).To(BeEmpty())
}

// field reads a field such as "spec.containers[manager].args". List items are selected by name or
// index.
func field(value any, path string) any {
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		switch node := value.(type) {
		case map[string]any:
			value = node[step]
		case []any:
			value = nil

			for i, item := range node {
				if name, _, _ := unstructured.NestedString(asMap(item), "name"); name == step || fmt.Sprint(i) == step {
					value = item
				}
			}
		default:
			return nil
		}
	}

	return value
}

func asMap(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}

// TestInvalidValues: Helm itself reports invalid values.
func TestInvalidValues(t *testing.T) {
	for name, c := range map[string]struct{ values, message string }{
		"a key":      {`{variable: {}}`, "additional properties 'variable' not allowed"},
		"a variable": {`{variables: {ODD_C: 1}}`, "additional properties 'ODD_C' not allowed"},
		"a Deployment": {
			`{deployments: {managers: {}}}`,
			"at '/deployments': additional properties 'managers' not allowed",
		},
		"a field": {
			deployment(`replica: 1`),
			"at '/deployments/manager': additional properties 'replica' not allowed",
		},
		"a container": {
			deployment(`containers: {main: {}}`),
			"additional properties 'main' not allowed",
		},
		"a container's field":         {manager(`arg: {}`), "additional properties 'arg' not allowed"},
		"a part of an image":          {manager(`image: {repo: x}`), "additional properties 'repo' not allowed"},
		"a part of images":            {`{images: {all: {repo: x}}}`, "additional properties 'repo' not allowed"},
		"args as a list":              {manager(`args: [--v=1]`), "got array, want null or object"},
		"env as a map":                {manager(`env: {A: b}`), "got object, want null or array"},
		"env without a name":          {manager(`env: [{value: b}]`), "missing property 'name'"},
		"a feature gate that is text": {manager(`featureGates: {A: maybe}`), "got string, want boolean"},
		"negative replicas":           {deployment(`replicas: -1`), "minimum: got -1, want 0"},
		"fractional replicas":         {deployment(`replicas: 1.5`), "want null or integer"},
		"a label that is a number":    {`{commonLabels: {a: 1}}`, "got number, want string"},
		"high availability without leader election": {
			`{deployments: {other: {highAvailability: true}}}`,
			"deployments.other.highAvailability is not possible without leader election",
		},
		"high availability that a flag makes impossible": {
			deployment(`highAvailability: true, containers: {manager: {args: {leader-elect: false}}}`),
			"deployments.manager.highAvailability is not possible without leader election",
		},
		"a selector's label": {
			deployment(`podLabels: {app: other}`),
			"deployments.manager.podLabels: the Deployment selects its pods by the label app",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			var values map[string]any
			g.Expect(yaml.Unmarshal([]byte(c.values), &values)).To(Succeed())

			_, err := renderWith(values)
			g.Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}

	t.Run("global values are not the chart's", func(t *testing.T) {
		_, err := renderWith(map[string]any{"global": map[string]any{"anything": []any{1}}})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

// deploymentWith returns a Deployment whose container has the given fields.
func deploymentWith(container string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager}\nspec: {selector: {}, template: {spec: " +
		"{containers: [{name: manager, image: registry.example.com/manager:v1, " + container + "}]}}}\n"
}

// deploymentImage returns a Deployment whose container has the given image.
func deploymentImage(image string) string {
	return strings.Replace(deploymentWith("command: [run]"), "registry.example.com/manager:v1", image, 1)
}
