package patches_test

import (
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/controllers/patches"
)

// manifest is a manifest as Helm renders it, with comments, in a style that no encoder writes.
const manifest = `---
# Source: infrastructure-tiny/templates/serviceaccount-manager.yaml
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: tiny, labels: {app: tiny}}   # as it was
---
# Source: infrastructure-tiny/templates/clusterrole-manager.yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: manager
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
---
# Source: infrastructure-tiny/templates/deployment-manager.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    app: tiny
    tier: control
  name: manager
  namespace: tiny
spec:
  replicas: 1
  template:
    spec:
      containers:
      - args: [--leader-elect]
        image: registry.example.com/tiny:v1.0.0
        name: manager
        env:
        - {name: A, value: "yes"}
        - {name: B, value: "0755"}
      - image: registry.example.com/proxy:v1.0.0
        name: proxy
      volumes:
      - {name: cert, secret: {secretName: cert}}
---
# Source: infrastructure-tiny/templates/tiny-settings.yaml
apiVersion: tiny.example.com/v1
kind: Settings
metadata:
  name: settings
  namespace: tiny
spec:
  big: 2147483648
  list:
  - name: a
    value: 1
  nested: {keep: true, drop: true}
`

// render applies the patches to the manifest and returns its objects by kind and name.
func render(t *testing.T, in patches.Input) (map[string]map[string]any, error) {
	t.Helper()

	in.Namespace, in.Label = "tiny", "infrastructure-tiny"

	r, err := patches.New(in)
	if err != nil {
		return nil, err
	}

	out, err := r.Render([]byte(manifest))
	if err != nil {
		return nil, err
	}

	again, err := r.Render([]byte(manifest))
	if err != nil || string(again) != string(out) {
		t.Errorf("rendering again gives another result: %v", err)
	}

	return objects(t, string(out)), nil
}

func objects(t *testing.T, manifest string) map[string]map[string]any {
	t.Helper()

	found := map[string]map[string]any{}

	for text := range strings.SplitSeq(manifest, "---\n") {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}

		var object map[string]any
		if err := utiljson.Unmarshal(data, &object); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}

		if object != nil {
			found[object["kind"].(string)+" "+object["metadata"].(map[string]any)["name"].(string)] = object
		}
	}

	return found
}

// expected returns the manifest's objects with one of them replaced by another, in YAML, or removed
// if that is empty.
func expected(t *testing.T, key, object string) map[string]map[string]any {
	t.Helper()
	all := objects(t, manifest)
	delete(all, key)

	for k, o := range objects(t, object) {
		all[k] = o
	}

	return all
}

// The beginnings of the manifest's objects, up to their specs.
const (
	deployment = `{apiVersion: apps/v1, kind: Deployment,
		metadata: {name: manager, namespace: tiny, labels: {app: tiny, tier: control}}, spec: `
	settings = `{apiVersion: tiny.example.com/v1, kind: Settings,
		metadata: {name: settings, namespace: tiny}, spec: `
)

// The parts of the Deployment's pod.
const (
	managerContainer = `{name: manager, image: "registry.example.com/tiny:v1.0.0", args: [--leader-elect],
		env: [{name: A, value: "yes"}, {name: B, value: "0755"}]}`
	proxyContainer = `{name: proxy, image: "registry.example.com/proxy:v1.0.0"}`
	certVolume     = `{name: cert, secret: {secretName: cert}}`
)

// spec returns the rest of the Deployment with other containers.
func spec(replicas string, containers ...string) string {
	return "{replicas: " + replicas + ", template: {spec: {containers: [" + strings.Join(containers, ", ") +
		"], volumes: [" + certVolume + "]}}}}"
}
