package docs_test

import (
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/values"
)

const configurePage = "docs/configure.md"

// components are those of a provider in the style of Cluster API.
const components = `
apiVersion: v1
kind: Service
metadata: {name: capa-webhook-service, namespace: capa-system}
spec: {ports: [{port: 443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: capa-controller-manager, namespace: capa-system}
spec:
  replicas: 1
  selector: {matchLabels: {control-plane: capa-controller-manager}}
  template:
    metadata: {labels: {control-plane: capa-controller-manager}}
    spec:
      containers:
      - name: manager
        image: registry.k8s.io/cluster-api-aws/controller:v2.11.1
        args: [--leader-elect, --feature-gates=MachinePool=false, "--v=${CAPA_LOGLEVEL:=0}", --cluster-concurrency=10]
        env: [{name: CREDENTIALS, value: "${AWS_B64ENCODED_CREDENTIALS}"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: webhook, namespace: capa-system}
spec:
  replicas: 1
  selector: {matchLabels: {app: webhook}}
  template:
    metadata: {labels: {app: webhook}}
    spec: {containers: [{name: server, image: "registry.k8s.io/cluster-api-aws/webhook:v2.11.1"}]}
`

// TestConfigureRows applies the field of each row of the page, and looks for what the row promises.
func TestConfigureRows(t *testing.T) {
	promises := map[string]string{
		"two replicas": "\n  replicas: 2\n",
		"webhooks that answer [while pods are replaced](high-availability.md)": "\n  replicas: 2\n",
		"[no managers](lifecycle.md#suspend-and-pause) for now":                "\n  replicas: 0\n",
		"more memory":         "limits:\n            memory: 2Gi\n",
		"certain nodes":       "nodeSelector:\n        pool: management\n",
		"nodes with a taint":  "tolerations:\n      - key: pool\n        operator: Exists\n",
		"a priority class":    "priorityClassName: system-cluster-critical\n",
		"a label on the pods": "        control-plane: capa-controller-manager\n        team: platform\n",
		"a feature gate, such as MachinePool or ClusterTopology": "- --feature-gates=MachinePool=true\n",
		"a log level":                     "- --v=4\n",
		"more objects at a time":          "- --cluster-concurrency=20\n",
		"another flag":                    "- --kube-api-qps=50\n",
		"an environment variable":         "- name: AWS_REGION\n          value: eu-west-1\n",
		"an image of my own":              "image: registry.example.com/capa:patched\n",
		"the image from another registry": "image: registry.example.com/capi/controller:v2.11.1\n",
		"a Secret to pull images":         "imagePullSecrets:\n      - name: registry\n",
		"a variable":                      "- --v=4\n",
		"a variable that is secret":       "value: from the Secret\n",
		"settings of another Deployment":  "\n  replicas: 2\n",
		"another object":                  "kind: PodDisruptionBudget\n",
		"anything else":                   "    team: platform\n  name: capa-webhook-service\n",
	}
	published := configured(t, "{}")
	rows := regexp.MustCompile("(?m)^\\| (.*) \\| `(.*)` \\|$").FindAllStringSubmatch(pages(t)[configurePage], -1)
	NewWithT(t).Expect(rows).To(HaveLen(len(promises)))

	for _, row := range rows {
		t.Run(row[1], func(t *testing.T) {
			g := NewWithT(t)
			promised := promises[row[1]]
			g.Expect(promised).NotTo(BeEmpty(), "the test does not know the row")
			g.Expect(published).NotTo(ContainSubstring(promised))
			g.Expect(configured(t, row[2])).To(ContainSubstring(promised))
		})
	}
}

// TestConfigureExamples applies the resources of the page.
func TestConfigureExamples(t *testing.T) {
	found := 0

	for _, b := range blocks(t, "yaml") {
		if b.page != configurePage {
			continue
		}

		for _, resource := range resources(t, b) {
			spec, err := yaml.Marshal(resource.Object["spec"])
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(configured(t, string(spec))).NotTo(Equal(configured(t, "{}")), b.String())

			found++
		}
	}

	NewWithT(t).Expect(found).To(Equal(2))
}

// configured returns the manifest of the components with a spec. All of the spec must have an effect. The Secret and
// the ConfigMap that it may name are those of the page.
func configured(t *testing.T, text string) string {
	t.Helper()
	g := NewWithT(t)

	spec := &v1alpha2.ProviderSpec{}
	g.Expect(yaml.UnmarshalStrict([]byte(text), spec)).To(Succeed())

	if spec.Manager != nil && spec.Manager.Verbosity == nil {
		spec.Manager.Verbosity = new(int32(1)) // the default of the API
	}

	variables := map[string]string{"AWS_B64ENCODED_CREDENTIALS": "none"}
	for name, value := range spec.Variables {
		variables[name] = value
	}

	if spec.SecretName != "" {
		variables["AWS_B64ENCODED_CREDENTIALS"] = "from the Secret"
	}

	chart, err := chartgen.Build(&bundle.Bundle{
		Provider:   bundle.Provider{Type: "InfrastructureProvider", Name: "aws", Label: "infrastructure-aws"},
		Version:    "v2.11.1",
		Components: []byte(components),
		Metadata: []byte(`apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries: [{major: 2, minor: 11, contract: v1beta2}]
`),
	})
	g.Expect(err).NotTo(HaveOccurred())

	schema, err := values.ReadSchema(chart)
	g.Expect(err).NotTo(HaveOccurred())

	chosen, warnings, err := schema.Values(values.Input{Spec: spec, Variables: variables})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings.Ignored).To(BeEmpty())

	rendered, err := render.Manifest(chart, "capa-system", chosen)
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := manifest.Decode(rendered)
	g.Expect(err).NotTo(HaveOccurred())

	changes := manifest.Input{
		Namespace: "capa-system", Label: "infrastructure-aws", Variables: variables,
		Patches: spec.Patches, Paused: spec.Paused, Scope: namespaced{},
	}
	if spec.AdditionalManifests != nil {
		changes.Additional = &manifest.Additional{Manifests: extras(t, spec.AdditionalManifests.Name)}
	}

	renderer, err := manifest.New(changes)
	g.Expect(err).NotTo(HaveOccurred())
	objects, err = renderer.Render(objects)
	g.Expect(err).NotTo(HaveOccurred())

	var documents []string

	for _, object := range objects {
		document, err := yaml.Marshal(object)
		g.Expect(err).NotTo(HaveOccurred())

		documents = append(documents, string(document))
	}

	return strings.Join(documents, "---\n")
}

// extras returns the manifests in the page's ConfigMap with a name.
func extras(t *testing.T, name string) string {
	t.Helper()

	for _, b := range blocks(t, "yaml") {
		var found corev1.ConfigMap
		if b.page != configurePage || yaml.Unmarshal([]byte(b.text), &found) != nil {
			continue
		}

		if found.Kind == "ConfigMap" && found.Name == name {
			return found.Data["manifests"]
		}
	}

	t.Fatalf("%s has no ConfigMap %s", configurePage, name)

	return ""
}

// namespaced is the scope of the page's additional object.
type namespaced struct{}

func (namespaced) IsObjectNamespaced(o runtime.Object) (bool, error) {
	_, err := scheme.Scheme.New(o.(*unstructured.Unstructured).GroupVersionKind())
	return true, err
}
