package manifest_test

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/controllers/manifest"
)

// numbered returns texts from a format with the numbers from 0.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}

	return b.String()
}

// allocated returns how many bytes a function allocates, whether they are used again or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)

	return after.TotalAlloc - before.TotalAlloc
}

// published is a manifest as Helm renders it.
const published = `---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: tiny, labels: {app: tiny}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: manager
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
---
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

// render returns the objects of the published manifest with the changes, by kind and name.
func render(t *testing.T, in manifest.Input) (map[string]map[string]any, error) {
	t.Helper()

	in.Namespace, in.Label = "tiny", "infrastructure-tiny"

	return renderOf(t, in, published)
}

func renderOf(t *testing.T, in manifest.Input, text string) (map[string]map[string]any, error) {
	t.Helper()

	renderer, err := manifest.New(in)
	if err != nil {
		return nil, err
	}

	rendered, err := renderer.Render(decode(t, text))
	if err != nil {
		return nil, err
	}

	again, err := renderer.Render(decode(t, text))
	if err != nil || !reflect.DeepEqual(again, rendered) {
		t.Errorf("rendering again gives another result: %v", err)
	}

	return byName(rendered), nil
}

func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()

	objects, err := manifest.Decode(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}

	return objects
}

// objects returns the objects of a manifest by kind and name.
func objects(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	return byName(decode(t, text))
}

func byName(objects []*unstructured.Unstructured) map[string]map[string]any {
	found := map[string]map[string]any{}
	for _, o := range objects {
		found[o.GetKind()+" "+o.GetName()] = o.Object
	}

	return found
}

// hit returns the objects that have annotations.
func hit(objects map[string]map[string]any) []string {
	var found []string

	for key, object := range objects {
		if object["metadata"].(map[string]any)["annotations"] != nil {
			found = append(found, key)
		}
	}

	return found
}

// expected returns the manifest's objects with one of them replaced by another, in YAML, or removed
// if that is empty.
func expected(t *testing.T, key, object string) map[string]map[string]any {
	t.Helper()
	all := objects(t, published)
	delete(all, key)

	maps.Copy(all, objects(t, object))

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
