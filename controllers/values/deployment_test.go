package values_test

import (
	"cmp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/values"
)

// TestDeployment covers every field of spec.deployment, and what it changes in the published
// Deployment.
func TestDeployment(t *testing.T) {
	chart := buildChart(t, managerComponents)

	const affinity = `{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {
		nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}`

	for name, c := range map[string]struct {
		spec string
		// change turns the published Deployment into the expected one.
		change func(*appsv1.Deployment)
	}{
		"nothing":             {`{}`, func(*appsv1.Deployment) {}},
		"an empty deployment": {`{deployment: {}}`, func(*appsv1.Deployment) {}},
		"replicas": {
			`{deployment: {replicas: 3}}`,
			func(d *appsv1.Deployment) { *d.Spec.Replicas = 3 },
		},
		"no replicas, which is not unset": {
			`{deployment: {replicas: 0}}`,
			func(d *appsv1.Deployment) { *d.Spec.Replicas = 0 },
		},
		"nodeSelector replaces": {
			`{deployment: {nodeSelector: {a: b}}}`,
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{"a": "b"} },
		},
		"nodeSelector clears": {
			`{deployment: {nodeSelector: {}}}`,
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{} },
		},
		"tolerations replace": {
			`{deployment: {tolerations: [{key: a, operator: Exists, tolerationSeconds: 5}]}}`,
			func(d *appsv1.Deployment) {
				edit(t, &d.Spec.Template.Spec.Tolerations, `[{key: a, operator: Exists, tolerationSeconds: 5}]`)
			},
		},
		"tolerations clear": {
			`{deployment: {tolerations: []}}`,
			func(d *appsv1.Deployment) { edit(t, &d.Spec.Template.Spec.Tolerations, `[]`) },
		},
		"affinity": {
			`{deployment: {affinity: ` + affinity + `}}`,
			func(d *appsv1.Deployment) { edit(t, &d.Spec.Template.Spec.Affinity, affinity) },
		},
		"serviceAccountName": {
			`{deployment: {serviceAccountName: other}}`,
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.ServiceAccountName = "other" },
		},
		"imagePullSecrets": {
			`{deployment: {imagePullSecrets: [{name: a}, {name: b}]}}`,
			func(d *appsv1.Deployment) {
				edit(t, &d.Spec.Template.Spec.ImagePullSecrets, `[{name: a}, {name: b}]`)
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

// TestContainer covers every field of spec.deployment.containers.
func TestContainer(t *testing.T) {
	chart := buildChart(t, managerComponents)

	for name, c := range map[string]struct {
		containers string
		// change turns the published containers into the expected ones.
		change func(manager, proxy, prepare *corev1.Container)
	}{
		"imageUrl": {
			`[{name: manager, imageUrl: "quay.io/dev/mydns:v3.4.2"}]`,
			func(manager, _, _ *corev1.Container) { manager.Image = "quay.io/dev/mydns:v3.4.2" },
		},
		"image, its tag": {
			`[{name: manager, image: {tag: v2}}]`,
			func(manager, _, _ *corev1.Container) { manager.Image = "registry.k8s.io/tiny/tiny-controller:v2" },
		},
		"image, all of it": {
			`[{name: manager, image: {repository: quay.io/dev, name: mydns, tag: v2}}]`,
			func(manager, _, _ *corev1.Container) { manager.Image = "quay.io/dev/mydns:v2" },
		},
		"an empty image": {
			`[{name: manager, image: {}, imageUrl: ""}]`,
			func(_, _, _ *corev1.Container) {},
		},
		"args replace and add, except --namespace of the manager": {
			`[{name: manager, args: {--webhook-port: "3456", --log_dir: /var/log, --namespace: a, b: c}}]`,
			func(manager, _, _ *corev1.Container) {
				manager.Args = []string{
					"--leader-elect",
					"--webhook-port=3456",
					"--feature-gates=Pool=false,Old=true",
					"--v=0",
					"--b=c",
					"--log_dir=/var/log",
				}
			},
		},
		"args of another container": {
			`[{name: proxy, args: {--namespace: other}}]`,
			func(_, proxy, _ *corev1.Container) { proxy.Args = []string{"--namespace=other"} },
		},
		"env": {
			`[{name: manager, env: [
				{name: TEST1, value: other}, {name: NEW, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]`,
			func(manager, _, _ *corev1.Container) {
				edit(t, &manager.Env, `[{name: TEST1, value: other}, {name: TEST2, value: value2},
					{name: NEW, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`)
			},
		},
		"resources that are not set stay": {
			`[{name: manager, resources: {limits: {memory: 16Gi}, requests: {memory: 1Gi}}}]`,
			func(manager, _, _ *corev1.Container) {
				edit(t, &manager.Resources, `{limits: {cpu: 500m, memory: 16Gi}, requests: {cpu: 100m, memory: 1Gi}}`)
			},
		},
		"command": {
			`[{name: manager, command: [/other, --flag]}]`,
			func(manager, _, _ *corev1.Container) { manager.Command = []string{"/other", "--flag"} },
		},
		"an init container": {
			`[{name: prepare, imageUrl: "quay.io/prepare:v2"}]`,
			func(_, _, prepare *corev1.Container) { prepare.Image = "quay.io/prepare:v2" },
		},
		"a container twice": {
			`[{name: proxy, command: [/a]}, {name: proxy, args: {x: z}}]`,
			func(_, proxy, _ *corev1.Container) {
				proxy.Command = []string{"/a"}
				proxy.Args = []string{"--namespace=own", "--x=z"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectChange(t, chart, "{deployment: {containers: "+c.containers+"}}", func(d *appsv1.Deployment) {
				c.change(containerNamed(t, d, "manager"), containerNamed(t, d, "proxy"), containerNamed(t, d, "prepare"))
			})
		})
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

func TestManagerDeployment(t *testing.T) {
	const both = `several Deployments have a container "manager": a, b; list the others in spec.additionalDeployments`

	const neither = `no Deployment with a container "manager" is left for them; ` +
		`use spec.additionalDeployments for all of a, b`

	for name, c := range map[string]struct {
		components []string
		additional string
		want       string // the Deployment that spec.deployment changes
		refused    string
	}{
		"the only one, with any name": {
			components: []string{deploymentComponents("anything", true, "manager")},
			want:       "anything",
		},
		"the only one, with any container": {
			components: []string{deploymentComponents("anything", true, "controller")},
			want:       "anything",
		},
		"the one with a container manager": {
			components: []string{
				deploymentComponents("cap-controller-manager", true, "other"),
				deploymentComponents("b", true, "proxy", "manager"),
				deploymentComponents("c", true, "x", "z"),
			},
			want: "b",
		},
		"of several, the labeled one": {
			components: []string{
				deploymentComponents("azureserviceoperator-controller-manager", false, "manager"),
				deploymentComponents("capz-controller-manager", true, "manager"),
			},
			want: "capz-controller-manager",
		},
		"of several labeled ones, the one that is not additional": {
			components: []string{
				deploymentComponents("a", true, "manager"),
				deploymentComponents("b", true, "manager"),
			},
			additional: "{a: {}}",
			want:       "b",
		},
		"of several without the label, the one that is not additional": {
			components: []string{
				deploymentComponents("a", false, "manager"),
				deploymentComponents("b", false, "manager"),
				deploymentComponents("c", false, "other"),
			},
			additional: "{b: {}}",
			want:       "a",
		},
		"several that are alike": {
			components: []string{
				deploymentComponents("a", true, "manager"),
				deploymentComponents("b", true, "manager"),
			},
			refused: both,
		},
		"all are additional": {
			components: []string{
				deploymentComponents("a", true, "manager"),
				deploymentComponents("b", true, "manager"),
			},
			additional: "{a: {}, b: {}}",
			refused:    neither,
		},
		"none has a container manager": {
			components: []string{deploymentComponents("a", true, "x"), deploymentComponents("b", true, "z")},
			refused:    neither,
		},
		"no Deployment at all": {
			components: []string{"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"},
			refused:    "infrastructure-tiny has no Deployment; remove them",
		},
		"the manager's Deployment is additional too": {
			components: []string{
				deploymentComponents("capz", true, "manager"),
				deploymentComponents("aso", false, "manager"),
			},
			additional: "{capz: {deployment: {replicas: 2}}}",
			refused:    "spec.additionalDeployments[capz]: this is the Deployment of the provider's manager",
		},
		"the only Deployment is additional too": {
			components: []string{deploymentComponents("lone", true, "manager")},
			additional: "{lone: {}}",
			refused:    "spec.additionalDeployments[lone]: this is the Deployment of the provider's manager",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			built := buildChart(t, strings.Join(c.components, ""))
			spec := "{deployment: {replicas: 10}, manager: {debug: false}, additionalDeployments: " +
				cmp.Or(c.additional, "{}") + "}"

			got, _, err := customized(t, built, values.Input{Spec: specOf(t, spec)})

			if c.refused != "" {
				var refused *values.CustomizationError
				g.Expect(err).To(BeAssignableToTypeOf(refused))
				g.Expect(err).To(MatchError(ContainSubstring(c.refused)))

				return
			}

			g.Expect(err).NotTo(HaveOccurred())

			for name, d := range got {
				g.Expect(*d.Spec.Replicas == 10).To(Equal(name == c.want), name)
			}
		})
	}
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

			var refused *values.CustomizationError
			NewWithT(t).Expect(err).To(And(BeAssignableToTypeOf(refused), MatchError(c.refused)))
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
