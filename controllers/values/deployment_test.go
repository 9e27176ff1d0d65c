package values_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/controllers/values"
)

// TestDeployment has every field of spec.deployment, and what it changes in the published
// Deployment: a merge patch of it.
func TestDeployment(t *testing.T) {
	chart := buildChart(t, managerComponents)

	const manager = "tiny-controller-manager"

	for name, c := range map[string]struct {
		spec string
		// change makes of the published Deployment the expected one.
		change func(*appsv1.Deployment)
	}{
		"nothing":                {`{}`, func(*appsv1.Deployment) {}},
		"an empty deployment":    {`{deployment: {}}`, func(*appsv1.Deployment) {}},
		"replicas":               {`{deployment: {replicas: 3}}`, func(d *appsv1.Deployment) { *d.Spec.Replicas = 3 }},
		"no replicas, not unset": {`{deployment: {replicas: 0}}`, func(d *appsv1.Deployment) { *d.Spec.Replicas = 0 }},
		"nodeSelector replaces":  {`{deployment: {nodeSelector: {a: b}}}`, func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{"a": "b"} }},
		"nodeSelector clears":    {`{deployment: {nodeSelector: {}}}`, func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{} }},
		"tolerations replace": {`{deployment: {tolerations: [{key: a, operator: Exists, tolerationSeconds: 5}]}}`, func(d *appsv1.Deployment) {
			edit(t, &d.Spec.Template.Spec.Tolerations, `[{key: a, operator: Exists, tolerationSeconds: 5}]`)
		}},
		"tolerations clear": {`{deployment: {tolerations: []}}`, func(d *appsv1.Deployment) { edit(t, &d.Spec.Template.Spec.Tolerations, `[]`) }},
		"affinity": {`{deployment: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}}`, func(d *appsv1.Deployment) {
			edit(t, &d.Spec.Template.Spec.Affinity, `{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}`)
		}},
		"serviceAccountName": {`{deployment: {serviceAccountName: other}}`, func(d *appsv1.Deployment) { d.Spec.Template.Spec.ServiceAccountName = "other" }},
		"imagePullSecrets": {`{deployment: {imagePullSecrets: [{name: a}, {name: b}]}}`, func(d *appsv1.Deployment) {
			edit(t, &d.Spec.Template.Spec.ImagePullSecrets, `[{name: a}, {name: b}]`)
		}},
		"imageUrl": {`{deployment: {containers: [{name: manager, imageUrl: "quay.io/dev/mydns:v3.4.2"}]}}`, func(d *appsv1.Deployment) {
			containerNamed(t, d, "manager").Image = "quay.io/dev/mydns:v3.4.2"
		}},
		"image, its tag": {`{deployment: {containers: [{name: manager, image: {tag: v2}}]}}`, func(d *appsv1.Deployment) {
			containerNamed(t, d, "manager").Image = "registry.k8s.io/tiny/tiny-controller:v2"
		}},
		"image, all of it": {`{deployment: {containers: [{name: manager, image: {repository: quay.io/dev, name: mydns, tag: v2}}]}}`, func(d *appsv1.Deployment) {
			containerNamed(t, d, "manager").Image = "quay.io/dev/mydns:v2"
		}},
		"an empty image": {`{deployment: {containers: [{name: manager, image: {}, imageUrl: ""}]}}`, func(*appsv1.Deployment) {}},
		"args replace and add, and say --namespace to no manager": {`{deployment: {containers: [{name: manager, args: {--webhook-port: "3456", --log_dir: /var/log, --namespace: a, b: c}}]}}`, func(d *appsv1.Deployment) {
			containerNamed(t, d, "manager").Args = []string{"--leader-elect", "--webhook-port=3456", "--feature-gates=Pool=false,Old=true", "--v=0", "--b=c", "--log_dir=/var/log"}
		}},
		"args of another container": {`{deployment: {containers: [{name: proxy, args: {--namespace: other}}]}}`, func(d *appsv1.Deployment) {
			containerNamed(t, d, "proxy").Args = []string{"--namespace=other"}
		}},
		"env": {`{deployment: {containers: [{name: manager, env: [{name: TEST1, value: other}, {name: NEW, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}`, func(d *appsv1.Deployment) {
			edit(t, &containerNamed(t, d, "manager").Env, `[{name: TEST1, value: other}, {name: TEST2, value: value2}, {name: NEW, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`)
		}},
		"resources that are not set stay": {`{deployment: {containers: [{name: manager, resources: {limits: {memory: 16Gi}, requests: {memory: 1Gi}}}]}}`, func(d *appsv1.Deployment) {
			edit(t, &containerNamed(t, d, "manager").Resources, `{limits: {cpu: 500m, memory: 16Gi}, requests: {cpu: 100m, memory: 1Gi}}`)
		}},
		"command": {`{deployment: {containers: [{name: manager, command: [/other, --flag]}]}}`, func(d *appsv1.Deployment) {
			containerNamed(t, d, "manager").Command = []string{"/other", "--flag"}
		}},
		"an init container": {`{deployment: {containers: [{name: prepare, imageUrl: "quay.io/prepare:v2"}]}}`, func(d *appsv1.Deployment) {
			containerNamed(t, d, "prepare").Image = "quay.io/prepare:v2"
		}},
		"a container twice": {`{deployment: {containers: [{name: proxy, command: [/a]}, {name: proxy, args: {x: z}}]}}`, func(d *appsv1.Deployment) {
			proxy := containerNamed(t, d, "proxy")
			proxy.Command, proxy.Args = []string{"/a"}, []string{"--namespace=own", "--x=z"}
		}},
		"in additionalDeployments": {`{additionalDeployments: {tiny-controller-manager: {deployment: {replicas: 2}, manager: {verbosity: 4}}}}`, func(d *appsv1.Deployment) {
			*d.Spec.Replicas = 2
			containerNamed(t, d, "manager").Args[3] = "--v=4"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want := rendered(t, chart, nil)
			c.change(want[manager])
			got, _, err := customized(t, chart, specOf(t, c.spec), nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(BeComparableTo(want))
		})
	}
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
	chart := func(deployments ...string) string {
		all := ""
		for _, d := range deployments {
			all += d
		}

		return all
	}
	for name, c := range map[string]struct {
		components string
		additional string
		want       string // the Deployment that spec.deployment changes
		refused    string
	}{
		"the only one, whatever it is called":            {chart(deploymentComponents("anything", true, "manager")), "{}", "anything", ""},
		"the only one, whatever its container is called": {chart(deploymentComponents("anything", true, "controller")), "{}", "anything", ""},
		"the one with a container manager": {
			chart(deploymentComponents("cap-controller-manager", true, "other"), deploymentComponents("b", true, "proxy", "manager"), deploymentComponents("c", true, "x", "z")), "{}", "b", "",
		},
		"of several, the one that is the provider's own": {
			chart(deploymentComponents("azureserviceoperator-controller-manager", false, "manager"), deploymentComponents("capz-controller-manager", true, "manager")), "{}", "capz-controller-manager", "",
		},
		"of several of its own, the one that is not among the additional": {
			chart(deploymentComponents("a", true, "manager"), deploymentComponents("b", true, "manager")), "{a: {}}", "b", "",
		},
		"of several of others, the one that is not among the additional": {
			chart(deploymentComponents("a", false, "manager"), deploymentComponents("b", false, "manager"), deploymentComponents("c", false, "other")), "{b: {}}", "a", "",
		},
		"several that are alike": {
			chart(deploymentComponents("a", true, "manager"), deploymentComponents("b", true, "manager")), "{}", "",
			`several Deployments have a container "manager": a, b; name the others in spec.additionalDeployments`,
		},
		"all are among the additional": {
			chart(deploymentComponents("a", true, "manager"), deploymentComponents("b", true, "manager")), "{a: {}, b: {}}", "",
			`no Deployment with a container "manager" is left for them; use spec.additionalDeployments for all of a, b`,
		},
		"none has a container manager": {
			chart(deploymentComponents("a", true, "x"), deploymentComponents("b", true, "z")), "{}", "",
			`no Deployment with a container "manager" is left for them; use spec.additionalDeployments for all of a, b`,
		},
		"no Deployment at all": {
			"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n", "{}", "", "infrastructure-tiny has no Deployment; remove them",
		},
		"it is among the additional too": {
			chart(deploymentComponents("capz", true, "manager"), deploymentComponents("aso", false, "manager")), "{capz: {deployment: {replicas: 2}}}", "",
			"spec.additionalDeployments[capz]: this is the Deployment of the provider's manager",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			built := buildChart(t, c.components)

			got, _, err := customized(
				t,
				built,
				specOf(t, "{deployment: {replicas: 10}, manager: {debug: false}, additionalDeployments: "+c.additional+"}"),
				nil,
			)
			if c.refused != "" {
				var wrong *values.CustomizationError
				g.Expect(err).To(BeAssignableToTypeOf(wrong))
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
	g := NewWithT(t)
	built := buildChart(
		t,
		deploymentComponents(
			"capz-controller-manager",
			true,
			"manager",
		)+deploymentComponents(
			"azureserviceoperator-controller-manager",
			false,
			"manager",
			"side",
		),
	)
	got, warnings, err := customized(t, built, specOf(t, `
deployment: {replicas: 10, containers: [{name: manager, args: {--a: b}}]}
manager: {profilerAddress: "localhost:1"}
additionalDeployments:
  azureserviceoperator-controller-manager:
    deployment: {replicas: 0, containers: [{name: manager, args: {--crd-pattern: ".*"}}, {name: side, args: {--namespace: kept}}]}
    manager: {additionalArgs: {--crd-pattern: "wins"}, featureGates: {A: true}}
`), nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())

	capz, aso := got["capz-controller-manager"], got["azureserviceoperator-controller-manager"]
	g.Expect(*capz.Spec.Replicas).To(BeEquivalentTo(10))
	g.Expect(containerNamed(t, capz, "manager").Args).To(Equal([]string{"--a=b", "--profiler-address=localhost:1"}))
	g.Expect(*aso.Spec.Replicas).To(BeEquivalentTo(0))
	g.Expect(containerNamed(t, aso, "manager").Args).To(Equal([]string{"--crd-pattern=wins", "--feature-gates=A=true"}))
	g.Expect(containerNamed(t, aso, "side").Args).To(Equal([]string{"--namespace=kept"}))
}

func TestWhatDoesNotFit(t *testing.T) {
	two := managerComponents + deploymentComponents("other", false, "x", "z")
	for name, c := range map[string]struct{ components, spec, refused string }{
		"a container that does not exist": {
			managerComponents, `{deployment: {containers: [{name: manger}]}}`,
			`spec.deployment.containers: Deployment tiny-controller-manager has no container "manger"; it has manager, prepare, proxy`,
		},
		"a container that does not exist in an additional Deployment": {
			two, `{additionalDeployments: {other: {deployment: {containers: [{name: manager}]}}}}`,
			`spec.additionalDeployments[other].deployment.containers: Deployment other has no container "manager"; it has x, z`,
		},
		"a Deployment that does not exist": {
			two, `{additionalDeployments: {another: {}}}`,
			`spec.additionalDeployments[another]: there is no such Deployment in infrastructure-tiny; it has other, tiny-controller-manager`,
		},
		"flags for a Deployment without a manager": {
			two, `{additionalDeployments: {other: {manager: {verbosity: 5}}}}`,
			`spec.additionalDeployments[other].manager: Deployment other has no container "manager" to set flags of; it has x, z; use args of a container in spec.additionalDeployments[other].deployment`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := customized(t, buildChart(t, c.components), specOf(t, c.spec), nil)

			var wrong *values.CustomizationError
			NewWithT(t).Expect(err).To(And(BeAssignableToTypeOf(wrong), MatchError(c.refused)))
		})
	}
}

// TestSameValues makes sure that nothing depends on the order of a map: every difference would be a
// new revision.
func TestSameValues(t *testing.T) {
	g := NewWithT(t)
	schema, err := values.ReadSchema(buildChart(t, managerComponents))
	g.Expect(err).NotTo(HaveOccurred())

	spec := specOf(
		t,
		`{manager: {additionalArgs: {--v: "1", v: "2", -v: "3", --w: "1", -w: "2"}, controller: {groupKindConcurrency: {a: 1, A: 2, a.b: 3}}}, deployment: {containers: [{name: manager, args: {--x: "1", x: "2", -x: "3"}}]}}`,
	)
	first, _, err := schema.Values(spec, nil)
	g.Expect(err).NotTo(HaveOccurred())

	for range 50 {
		again, _, err := schema.Values(spec, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(BeComparableTo(first))
	}
}

// TestNothingIsNoValue makes sure that a spec that changes nothing makes the same values, and so
// the same revision, as none.
func TestNothingIsNoValue(t *testing.T) {
	g := NewWithT(t)
	schema, err := values.ReadSchema(buildChart(t, managerComponents))
	g.Expect(err).NotTo(HaveOccurred())

	for _, spec := range []string{`{}`, `{manager: {}}`, `{deployment: {}}`, `{deployment: {containers: [{name: proxy}]}, manager: {verbosity: 1}}`} {
		got, _, err := schema.Values(
			specOf(t, spec),
			map[string]string{"TINY_LEVEL": "3", "OTHER": "secret", "images": "all: {}"},
		)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(map[string]any{"variables": map[string]any{"TINY_LEVEL": "3"}}), spec)
	}
}
