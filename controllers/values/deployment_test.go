package values_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/values"
)

// TestFieldsAreValues checks that the chart has a value for each field of the API, under the same name. What the value
// does is tested with the chart.
func TestFieldsAreValues(t *testing.T) {
	type node struct{ Properties map[string]node }

	var schema struct {
		Properties, Definitions map[string]node
	}

	g := NewWithT(t)
	g.Expect(json.Unmarshal(buildChart(t, managerComponents).File(chart.SchemaFile), &schema)).To(Succeed())

	for _, name := range namesOf(reflect.TypeFor[v1alpha2.DeploymentSpec]()) {
		g.Expect(schema.Properties["deployments"].Properties["tiny-controller-manager"].Properties).To(HaveKey(name))
	}

	for _, name := range namesOf(reflect.TypeFor[v1alpha2.ContainerSpec]()) {
		if name != "name" && name != "imageUrl" {
			g.Expect(schema.Definitions["container"].Properties).To(HaveKey(name))
		}
	}
}

// namesOf returns the names of the fields of a type in JSON.
func namesOf(t reflect.Type) []string {
	var names []string

	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}

	return names
}

// TestDeployment covers what fields of spec.deployment change in the published Deployment, and when they are set.
func TestDeployment(t *testing.T) {
	chart := buildChart(t, managerComponents)

	for name, c := range map[string]struct {
		spec string
		// change turns the published Deployment into the expected one.
		change func(*appsv1.Deployment)
	}{
		"nothing":             {`{}`, func(*appsv1.Deployment) {}},
		"an empty deployment": {`{deployment: {}}`, func(*appsv1.Deployment) {}},
		"no replicas, which is not unset": {
			`{deployment: {replicas: 0}}`,
			func(d *appsv1.Deployment) { *d.Spec.Replicas = 0 },
		},
		"nodeSelector clears": {
			`{deployment: {nodeSelector: {}}}`,
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{} },
		},
		"tolerations clear": {
			`{deployment: {tolerations: []}}`,
			func(d *appsv1.Deployment) { edit(t, &d.Spec.Template.Spec.Tolerations, `[]`) },
		},
		"imagePullSecrets clear": {
			`{deployment: {imagePullSecrets: []}}`,
			func(d *appsv1.Deployment) { edit(t, &d.Spec.Template.Spec.ImagePullSecrets, `[]`) },
		},
		"other fields": {
			`{deployment: {serviceAccountName: other, securityContext: {fsGroup: 65532}, podLabels: {team: a},
				affinity: {nodeAffinity: {}}}}`,
			func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.ServiceAccountName = "other"
				edit(t, &d.Spec.Template.Spec.SecurityContext, `{runAsNonRoot: true, fsGroup: 65532}`)
				metav1.SetMetaDataLabel(&d.Spec.Template.ObjectMeta, "team", "a")
				edit(t, &d.Spec.Template.Spec.Affinity, `{nodeAffinity: {}}`)
			},
		},
		"in additionalDeployments": {
			`{additionalDeployments: {tiny-controller-manager: {deployment: {replicas: 2}, manager: {verbosity: 4}}}}`,
			func(d *appsv1.Deployment) {
				*d.Spec.Replicas = 2
				containerNamed(t, d, "manager").Args[3] = "--v=4"
			},
		},
	} {
		t.Run(name, func(t *testing.T) { expectChange(t, chart, c.spec, c.change) })
	}
}

// expectChange compares what a spec changes in the chart's only Deployment.
func expectChange(t *testing.T, c *chart.Chart, spec string, change func(*appsv1.Deployment)) {
	t.Helper()

	g := NewWithT(t)
	want := rendered(t, c, nil)
	change(want["tiny-controller-manager"])

	got, _, err := customized(t, c, values.Input{Spec: specOf(t, spec)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(BeComparableTo(want))
}

// edit sets a field of a Deployment from YAML.
func edit[T any](t *testing.T, field *T, text string) {
	t.Helper()

	var value T
	if err := yaml.UnmarshalStrict([]byte(text), &value); err != nil {
		t.Fatal(err)
	}

	*field = value
}

func TestAdditionalDeployments(t *testing.T) {
	const (
		capzName = "capz-controller-manager"
		asoName  = "azureserviceoperator-controller-manager"
	)

	g := NewWithT(t)
	built := buildChart(
		t, deploymentComponents(capzName, true, "manager")+deploymentComponents(asoName, false, "manager", "side"))

	got, warnings, err := customized(t, built, values.Input{Spec: specOf(t, `
deployment: {replicas: 10, containers: [{name: manager, args: {--a: b}}]}
manager: {profilerAddress: "localhost:1"}
additionalDeployments:
  azureserviceoperator-controller-manager:
    deployment:
      replicas: 0
      containers: [{name: manager, args: {--crd-pattern: ".*"}}, {name: side, args: {--namespace: kept}}]
    manager: {additionalArgs: {--crd-pattern: "wins"}, featureGates: {A: true}}
`)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())

	capz := got[capzName]
	g.Expect(*capz.Spec.Replicas).To(BeEquivalentTo(10))
	g.Expect(containerNamed(t, capz, "manager").Args).To(Equal([]string{"--a=b", "--profiler-address=localhost:1"}))

	aso := got[asoName]
	g.Expect(*aso.Spec.Replicas).To(BeEquivalentTo(0))
	g.Expect(containerNamed(t, aso, "manager").Args).To(Equal([]string{"--crd-pattern=wins", "--feature-gates=A=true"}))
	g.Expect(containerNamed(t, aso, "side").Args).To(Equal([]string{"--namespace=kept"}))
}

func TestCustomizationError(t *testing.T) {
	two := managerComponents + deploymentComponents("other", false, "x", "z")

	for name, c := range map[string]struct{ components, spec, refused string }{
		"a container that does not exist": {
			managerComponents,
			`{deployment: {containers: [{name: manger}]}}`,
			`spec.deployment.containers: Deployment tiny-controller-manager has no container "manger"; ` +
				`it has manager, prepare, proxy`,
		},
		"a container that does not exist in an additional Deployment": {
			two,
			`{additionalDeployments: {other: {deployment: {containers: [{name: manager}]}}}}`,
			`spec.additionalDeployments[other].deployment.containers: Deployment other has no container "manager"; ` +
				`it has x, z`,
		},
		"a Deployment that does not exist": {
			two,
			`{additionalDeployments: {another: {}}}`,
			`spec.additionalDeployments[another]: there is no such Deployment in infrastructure-tiny; ` +
				`it has other, tiny-controller-manager`,
		},
		"flags for a Deployment without a manager": {
			two,
			`{additionalDeployments: {other: {manager: {verbosity: 5}}}}`,
			`spec.additionalDeployments[other].manager: Deployment other has no container "manager" to set flags of; ` +
				`it has x, z; set args of a container in spec.additionalDeployments[other].deployment instead`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := customized(t, buildChart(t, c.components), values.Input{Spec: specOf(t, c.spec)})

			NewWithT(t).Expect(err).To(And(
				HaveField("Reason", v1alpha2.ComponentsCustomizationErrorReason), MatchError(c.refused)))
		})
	}
}

// TestDeterminism checks that the values do not depend on the order of a map: each difference would
// be a new revision.
func TestDeterminism(t *testing.T) {
	g := NewWithT(t)
	schema, err := values.ReadSchema(buildChart(t, managerComponents))
	g.Expect(err).NotTo(HaveOccurred())

	in := values.Input{Spec: specOf(t, `
manager:
  additionalArgs: {--v: "1", v: "2", -v: "3", --w: "1", -w: "2"}
  controller: {groupKindConcurrency: {a: 1, A: 2, a.b: 3}}
deployment: {containers: [{name: manager, args: {--x: "1", x: "2", -x: "3"}}]}
`)}
	first, _, err := schema.Values(in)
	g.Expect(err).NotTo(HaveOccurred())

	for range 50 {
		again, _, err := schema.Values(in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(BeComparableTo(first))
	}
}

// TestEmptySpec checks that a spec that changes nothing results in the same values, and so the same
// revision, as no spec.
func TestEmptySpec(t *testing.T) {
	g := NewWithT(t)
	schema, err := values.ReadSchema(buildChart(t, managerComponents))
	g.Expect(err).NotTo(HaveOccurred())

	for _, spec := range []string{
		`{}`,
		`{manager: {}}`,
		`{deployment: {}}`,
		`{deployment: {containers: [{name: proxy}]}, manager: {verbosity: 1}}`,
	} {
		got, _, err := schema.Values(values.Input{
			Spec:           specOf(t, spec),
			Variables:      map[string]string{"TINY_LEVEL": "3", "OTHER": "secret", "images": "all: {}"},
			ImageOverrides: "infrastructure-tiny: {}",
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(map[string]any{"variables": map[string]any{"TINY_LEVEL": "3"}}), spec)
	}
}
