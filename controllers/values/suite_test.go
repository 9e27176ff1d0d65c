package values_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/controllers/values"
)

// managerComponents are the components of a provider with one Deployment.
const managerComponents = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: tiny-controller-manager
  namespace: tiny-system
spec:
  replicas: 1
  selector: {matchLabels: {app: tiny}}
  template:
    metadata: {labels: {app: tiny}}
    spec:
      serviceAccountName: tiny
      nodeSelector: {kubernetes.io/os: linux}
      securityContext: {runAsNonRoot: true}
      tolerations:
      - {key: node-role.kubernetes.io/control-plane, effect: NoSchedule}
      initContainers:
      - {name: prepare, image: "registry.k8s.io/tiny/prepare:v1.0.0"}
      containers:
      - name: proxy
        image: registry.k8s.io/tiny/proxy:v1.0.0
        args: [--namespace=own]
      - name: manager
        image: registry.k8s.io/tiny/tiny-controller:v1.0.0
        args:
        - --leader-elect
        - --webhook-port=2345
        - --feature-gates=Pool=${EXP_POOL:=false},Old=true
        - --v=${TINY_LEVEL:=0}
        env:
        - {name: TEST1, value: value1}
        - {name: TEST2, value: value2}
        resources: {limits: {cpu: 500m, memory: 1Gi}, requests: {cpu: 100m}}
        livenessProbe: {httpGet: {path: /healthz, port: healthz}, periodSeconds: 7}
        readinessProbe: {httpGet: {path: /readyz, port: healthz}}
`

// deploymentComponents returns a Deployment with the containers, with or without the provider's
// label.
func deploymentComponents(name string, labeled bool, containers ...string) string {
	label := ""
	if labeled {
		label = ", cluster.x-k8s.io/provider: infrastructure-tiny"
	}

	list := ""
	for _, c := range containers {
		list += "\n      - {name: " + c + `, image: "registry.k8s.io/tiny/` + c + `:v1"}`
	}

	return `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `, namespace: tiny-system, labels: {app: ` + name + label + `}}
spec:
  replicas: 1
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    spec:
      containers:` + list + "\n"
}

func buildChart(t *testing.T, components string) *chart.Chart {
	t.Helper()

	c, err := chartgen.Build(&bundle.Bundle{
		Provider: bundle.Provider{
			Type:  "InfrastructureProvider",
			Name:  "tiny",
			Label: "infrastructure-tiny",
		},
		Version:    "v1.0.0",
		Components: []byte(components),
		Metadata: []byte(`apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta2}
`),
	})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// customized returns the Deployments that Helm renders from the chart with the input's values, by
// name, and the warnings.
func customized(
	t *testing.T,
	c *chart.Chart,
	in values.Input,
) (map[string]*appsv1.Deployment, []string, error) {
	t.Helper()

	schema, err := values.ReadSchema(c)
	if err != nil {
		t.Fatal(err)
	}

	chosen, warnings, err := schema.Values(in)
	if err != nil {
		return nil, nil, err
	}

	return rendered(t, c, chosen), warnings.Ignored, nil
}

// rendered returns the Deployments that Helm renders from the chart. The values must be valid by its
// schema.
func rendered(t *testing.T, c *chart.Chart, chosen map[string]any) map[string]*appsv1.Deployment {
	t.Helper()
	g := NewWithT(t)
	result, err := render.Render(c, chosen, helm.ReleaseOptions{Name: "tiny", Namespace: "tiny"})
	g.Expect(err).NotTo(HaveOccurred())

	deployments := map[string]*appsv1.Deployment{}

	for text := range strings.SplitSeq(result.Manifest, "\n---\n") {
		if strings.Contains(text, "\nkind: Deployment\n") {
			d := &appsv1.Deployment{}
			g.Expect(yaml.UnmarshalStrict([]byte(text), d)).To(Succeed(), text)
			deployments[d.Name] = d
		}
	}

	return deployments
}

// specOf parses a spec, and sets the default verbosity as the API server would.
func specOf(t *testing.T, text string) *v1alpha2.ProviderSpec {
	t.Helper()

	spec := &v1alpha2.ProviderSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}

	one := int32(1)
	if spec.Manager != nil && spec.Manager.Verbosity == nil {
		spec.Manager.Verbosity = &one
	}

	return spec
}

func containerNamed(t *testing.T, d *appsv1.Deployment, name string) *corev1.Container {
	t.Helper()

	pod := &d.Spec.Template.Spec
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}

	t.Fatalf("no container %s", name)

	return nil
}
