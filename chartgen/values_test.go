package chartgen_test

import (
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
const workloads = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: odd-system, labels: {app: odd, tier: published}}
spec:
  replicas: 2
  selector: {matchLabels: {app: odd}}
  template:
    metadata: {labels: {app: odd}}
    spec:
      nodeSelector: {os: linux}
      serviceAccountName: manager
      tolerations: [{key: published}]
      initContainers:
      - {name: init, image: nginx}
      containers:
      - name: manager
        image: registry.k8s.io/cluster-api/manager:v1.0.0
        command: [/manager]
        args: [--leader-elect, --v=2, "--feature-gates=B=${ODD_B:=true},A=false", --sync, 10m, -s=1, --v=3, --tail=a=b, run]
        env: [{name: ONE, value: "1"}, {name: TWO, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        resources: {limits: {cpu: 1, memory: 64Mi}, requests: {cpu: 10m}}
        livenessProbe: {httpGet: {path: /healthz, port: 9440}, periodSeconds: 10}
      - {name: proxy, image: "localhost:5000/proxy@sha256:0000000000000000000000000000000000000000000000000000000000000000"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other}
spec: {selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: other}}, spec: {containers: [{name: manager, image: "quay.io/other:v1", args: ["--feature-gates=\"B=true\""]}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: none}
spec: {selector: {matchLabels: {app: none}}, template: {metadata: {labels: {app: none}}, spec: {containers: [{name: manager, image: "quay.io/other:v1", args: ['--feature-gates=${ODD_NONE:=}']}]}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: agent, image: docker.io/busybox}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: cleanup}
spec: {schedule: "@daily", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: cleanup, image: "example.com/a/b/cleanup:v2"}]}}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: once, annotations: {note: published}}
spec: {containers: [{name: once, image: org/once}, {name: local, image: localhost/once}]}
`

const digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// Prefixes of the fields in the tables.
const (
	podSpec   = "spec.template.spec."
	container = podSpec + "containers[manager]."
)

// TestValues: each value changes its field, and the others stay as published.
func TestValues(t *testing.T) {
	published := []any{
		"--leader-elect",
		"--v=2",
		"--feature-gates=B=true,A=false",
		"--sync",
		"10m",
		"-s=1",
		"--v=3",
		"--tail=a=b",
		"run",
	}
	for name, c := range map[string]struct {
		values string
		object string // "Deployment/manager" if empty
		want   map[string]any
	}{
		"nothing": {`{}`, "", map[string]any{"spec.replicas": 2, container + "args": published, "metadata.annotations": nil}},
		"nulls": {`{deployments: {manager: {replicas: null, tolerations: null, containers: {manager: {args: null, resources: null, image: null}}}}, images: null}`, "",
			map[string]any{"spec.replicas": 2, container + "args": published, container + "resources.limits.cpu": 1, podSpec + "tolerations[0].key": "published"}},
		"replicas":                    {deployment(`replicas: 3`), "", map[string]any{"spec.replicas": 3}},
		"no replicas":                 {deployment(`replicas: 0`), "", map[string]any{"spec.replicas": 0}},
		"many replicas":               {deployment(`replicas: 1000000`), "", map[string]any{"spec.replicas": 1000000}},
		"nodeSelector":                {deployment(`nodeSelector: {disk: ssd}`), "", map[string]any{podSpec + "nodeSelector": map[string]any{"disk": "ssd"}}},
		"tolerations":                 {deployment(`tolerations: [{key: mine}]`), "", map[string]any{podSpec + "tolerations": []any{map[string]any{"key": "mine"}}}},
		"no tolerations":              {deployment(`tolerations: []`), "", map[string]any{podSpec + "tolerations": []any{}}},
		"affinity":                    {deployment(`affinity: {nodeAffinity: {}}`), "", map[string]any{podSpec + "affinity": map[string]any{"nodeAffinity": map[string]any{}}}},
		"serviceAccountName":          {deployment(`serviceAccountName: mine`), "", map[string]any{podSpec + "serviceAccountName": "mine"}},
		"imagePullSecrets":            {deployment(`imagePullSecrets: [{name: mine}]`), "", map[string]any{podSpec + "imagePullSecrets[mine].name": "mine"}},
		"podLabels":                   {deployment(`podLabels: {team: a}`), "", map[string]any{"spec.template.metadata.labels": map[string]any{"app": "odd", "team": "a"}}},
		"podAnnotations":              {deployment(`podAnnotations: {team: a}`), "", map[string]any{"spec.template.metadata.annotations.team": "a"}},
		"another Deployment is alone": {deployment(`replicas: 0`), "Deployment/other", map[string]any{"spec.replicas": nil}},

		"command":                     {manager(`command: [/debug, x]`), "", map[string]any{container + "command": []any{"/debug", "x"}, container + "args": published}},
		"init container":              {deployment(`containers: {init: {command: [/x]}}`), "", map[string]any{podSpec + "initContainers[init].command": []any{"/x"}}},
		"env replaced and appended":   {manager(`env: [{name: THREE, value: "3"}, {name: ONE, value: one}]`), "", map[string]any{container + "env": []any{entry("ONE", "one"), map[string]any{"name": "TWO", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}}, entry("THREE", "3")}}},
		"resources merged":            {manager(`resources: {limits: {cpu: 2}, requests: {memory: 1Mi}}`), "", map[string]any{container + "resources": map[string]any{"limits": map[string]any{"cpu": 2, "memory": "64Mi"}, "requests": map[string]any{"cpu": "10m", "memory": "1Mi"}}}},
		"a resource of nothing":       {manager(`resources: {limits: {cpu: 0, memory: null}}`), "", map[string]any{container + "resources.limits": map[string]any{"cpu": 0}}},
		"resources where are none":    {deployment(`containers: {proxy: {resources: {limits: {cpu: 1}}}}`), "", map[string]any{podSpec + "containers[proxy].resources.limits.cpu": 1}},
		"livenessProbe merged":        {manager(`livenessProbe: {httpGet: {path: /live}}`), "", map[string]any{container + "livenessProbe": map[string]any{"httpGet": map[string]any{"path": "/live", "port": 9440}, "periodSeconds": 10}}},
		"readinessProbe":              {manager(`readinessProbe: {httpGet: {path: /ready, port: 1}}`), "", map[string]any{container + "readinessProbe.httpGet.path": "/ready"}},
		"a probe of another kind":     {manager(`livenessProbe: {httpGet: null, tcpSocket: {port: 1}}`), "", map[string]any{container + "livenessProbe": map[string]any{"tcpSocket": map[string]any{"port": 1}, "periodSeconds": 10}}},
		"flag replaced where it is":   {manager(`args: {v: 9}`), "", args("--leader-elect", "--v=9", "--feature-gates=B=true,A=false", "--sync", "10m", "-s=1", "--tail=a=b", "run")},
		"flag with dashes":            {manager(`args: {--v: 9, -s: two}`), "", args("--leader-elect", "--v=9", "--feature-gates=B=true,A=false", "--sync", "10m", "--s=two", "--tail=a=b", "run")},
		"flags appended, sorted":      {manager(`args: {zz: x, aa: 1000000, mm: false}`), "", args(append(published, "--aa=1000000", "--mm=false", "--zz=x")...)},
		"flag with its value apart":   {manager(`args: {sync: 1h}`), "", args("--leader-elect", "--v=2", "--feature-gates=B=true,A=false", "--sync=1h", "-s=1", "--v=3", "--tail=a=b", "run")},
		"flag without a value":        {manager(`args: {leader-elect: false}`), "", args("--leader-elect=false", "--v=2", "--feature-gates=B=true,A=false", "--sync", "10m", "-s=1", "--v=3", "--tail=a=b", "run")},
		"flags removed":               {manager(`args: {v: null, sync: null, absent: null}`), "", args("--leader-elect", "--feature-gates=B=true,A=false", "-s=1", "--tail=a=b", "run")},
		"flag of a tricky value":      {manager(`args: {tail: "{{ x }}=\"'\n"}`), "", args("--leader-elect", "--v=2", "--feature-gates=B=true,A=false", "--sync", "10m", "-s=1", "--v=3", "--tail={{ x }}=\"'\n", "run")},
		"args where are none":         {deployment(`containers: {proxy: {args: {v: 1}}}`), "", map[string]any{podSpec + "containers[proxy].args": []any{"--v=1"}}},
		"feature gates":               {manager(`featureGates: {A: true, C: false}`), "", args("--leader-elect", "--v=2", "--feature-gates=A=true,B=true,C=false", "--sync", "10m", "-s=1", "--v=3", "--tail=a=b", "run")},
		"feature gates over args":     {manager(`featureGates: {A: true}, args: {feature-gates: "A=false,Z=true"}`), "", args("--leader-elect", "--v=2", "--feature-gates=A=true,Z=true", "--sync", "10m", "-s=1", "--v=3", "--tail=a=b", "run")},
		"feature gates over variable": {`{variables: {ODD_B: false}, deployments: {manager: {containers: {manager: {featureGates: {A: true}}}}}}`, "", args("--leader-elect", "--v=2", "--feature-gates=A=true,B=false", "--sync", "10m", "-s=1", "--v=3", "--tail=a=b", "run")},
		"feature gates appended":      {deployment(`containers: {proxy: {featureGates: {A: true}}}`), "", map[string]any{podSpec + "containers[proxy].args": []any{"--feature-gates=A=true"}}},
		"feature gates in quotes": {`{deployments: {other: {containers: {manager: {featureGates: {A: true}}}}}}`, "Deployment/other",
			map[string]any{container + "args": []any{"--feature-gates=A=true,B=true"}}},
		"no feature gates but quotes": {`{variables: {ODD_NONE: '""'}, deployments: {none: {containers: {manager: {featureGates: {A: true}}}}}}`, "Deployment/none",
			map[string]any{container + "args": []any{"--feature-gates=A=true"}}},

		"image":                         {manager(`image: example.com/x:1`), "", images("example.com/x:1", "nginx", "localhost:5000/proxy"+digest)},
		"image's tag":                   {manager(`image: {tag: v2}`), "", images("registry.k8s.io/cluster-api/manager:v2", "nginx", "localhost:5000/proxy"+digest)},
		"image's repository":            {manager(`image: {repository: example.com/x/, name: other}`), "", images("example.com/x/other:v1.0.0", "nginx", "localhost:5000/proxy"+digest)},
		"image with a digest":           {deployment(`containers: {proxy: {image: {name: other}}}`), "", images("registry.k8s.io/cluster-api/manager:v1.0.0", "nginx", "localhost:5000/other"+digest)},
		"tag in place of a digest":      {deployment(`containers: {proxy: {image: {tag: v1}}}`), "", images("registry.k8s.io/cluster-api/manager:v1.0.0", "nginx", "localhost:5000/proxy:v1")},
		"images by name":                {`{images: {manager: {tag: v2}, nginx: {name: engine}}}`, "", images("registry.k8s.io/cluster-api/manager:v2", "engine", "localhost:5000/proxy"+digest)},
		"all images, one in particular": {`{images: {all: {repository: example.com, tag: v3}, manager: {tag: v2}}}`, "", images("example.com/manager:v2", "example.com/nginx:v3", "example.com/proxy:v3")},
		"imageRegistry":                 {`{imageRegistry: "mirror:5000/x"}`, "", images("mirror:5000/x/cluster-api/manager:v1.0.0", "mirror:5000/x/library/nginx", "mirror:5000/x/proxy"+digest)},
		"images, then imageRegistry":    {`{imageRegistry: mirror, images: {all: {repository: example.com/a}}}`, "", images("mirror/a/manager:v1.0.0", "mirror/a/nginx", "mirror/a/proxy"+digest)},
		"image over imageRegistry":      {`{imageRegistry: mirror, images: {all: {tag: v2}}, deployments: {manager: {containers: {manager: {image: example.com/x}, init: {image: {tag: v3}}}}}}`, "", images("example.com/x", "mirror/library/nginx:v3", "mirror/proxy:v2")},
		"a DaemonSet's image":           {`{imageRegistry: mirror}`, "DaemonSet/agent", map[string]any{podSpec + "containers[agent].image": "mirror/library/busybox"}},
		"a CronJob's image":             {`{imageRegistry: mirror}`, "CronJob/cleanup", map[string]any{"spec.jobTemplate.spec.template.spec.containers[cleanup].image": "mirror/a/b/cleanup:v2"}},
		"a Pod's image":                 {`{imageRegistry: mirror}`, "Pod/once", map[string]any{"spec.containers[once].image": "mirror/org/once", "spec.containers[local].image": "mirror/once"}},
		"no registry, a slash":          {`{}`, "Pod/once", map[string]any{"spec.containers[once].image": "org/once"}},

		"commonLabels": {`{commonLabels: {team: a, tier: mine, cluster.x-k8s.io/provider: none}}`, "",
			map[string]any{"metadata.labels": map[string]any{"app": "odd", "team": "a", "tier": "mine", "cluster.x-k8s.io/provider": "infrastructure-odd", "clusterctl.cluster.x-k8s.io": ""}, "spec.selector.matchLabels": map[string]any{"app": "odd"}, "spec.template.metadata.labels": map[string]any{"app": "odd"}}},
		"commonAnnotations": {`{commonAnnotations: {team: a}}`, "Pod/once", map[string]any{"metadata.annotations": map[string]any{"note": "published", "team": "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			if c.object == "" {
				c.object = "Deployment/manager"
			}

			objects, err := renderWith(c.values)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(objects).To(HaveKey(c.object))

			for path, want := range c.want {
				got, err := yaml.Marshal(field(objects[c.object], path))
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

func entry(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }

func args(all ...any) map[string]any { return map[string]any{container + "args": all} }

func images(manager, init, proxy string) map[string]any {
	return map[string]any{
		container + "image":                    manager,
		podSpec + "initContainers[init].image": init,
		podSpec + "containers[proxy].image":    proxy,
	}
}

// renderWith renders the workloads with values in YAML and returns the objects by kind and name.
func renderWith(values string) (map[string]map[string]any, error) {
	built, err := chartgen.Build(provider("odd", workloads))
	if err != nil {
		return nil, err
	}

	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}

	manifest, err := render.Manifest(built, targetNamespace, given)
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
		"a key":                   {`{variable: {}}`, "additional properties 'variable' not allowed"},
		"a variable":              {`{variables: {ODD_C: 1}}`, "additional properties 'ODD_C' not allowed"},
		"a Deployment":            {`{deployments: {managers: {}}}`, "at '/deployments': additional properties 'managers' not allowed"},
		"a field":                 {deployment(`replica: 1`), "at '/deployments/manager': additional properties 'replica' not allowed"},
		"a container":             {deployment(`containers: {main: {}}`), "additional properties 'main' not allowed"},
		"a container's field":     {manager(`arg: {}`), "additional properties 'arg' not allowed"},
		"a part of an image":      {manager(`image: {repo: x}`), "additional properties 'repo' not allowed"},
		"a part of images":        {`{images: {all: {repo: x}}}`, "additional properties 'repo' not allowed"},
		"args as a list":          {manager(`args: [--v=1]`), "got array, want null or object"},
		"env as a map":            {manager(`env: {A: b}`), "got object, want null or array"},
		"env without a name":      {manager(`env: [{value: b}]`), "missing property 'name'"},
		"a gate that is text":     {manager(`featureGates: {A: maybe}`), "got string, want boolean"},
		"less than nothing":       {deployment(`replicas: -1`), "minimum: got -1, want 0"},
		"half a pod":              {deployment(`replicas: 1.5`), "want null or integer"},
		"a label that is no text": {`{commonLabels: {a: 1}}`, "got number, want string"},
		"a selector's label":      {deployment(`podLabels: {app: other}`), "deployments.manager.podLabels: the Deployment selects its pods by the label app"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := renderWith(c.values)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}

	t.Run("global values are not the chart's", func(t *testing.T) {
		_, err := renderWith(`{global: {anything: [1]}}`)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}
