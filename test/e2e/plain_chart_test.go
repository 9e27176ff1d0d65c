package e2e

import (
	"fmt"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// plainChart is a Helm chart that Capstan did not build: with values, a subchart, CRDs in files that are
// not named after them, and a hook.
func plainChart(name string) []chart.File {
	crd := func(plural, kind string) string {
		return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.%[3]s.example.org
spec:
  group: %[3]s.example.org
  names: {kind: %[2]s, plural: %[1]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
`, plural, kind, name)
	}

	return []chart.File{
		{Name: chart.MetadataFile, Data: []byte(`apiVersion: v2
name: ` + name + `
version: 1.0.0
appVersion: v1.0.0
dependencies:
- {name: always, version: 1.0.0}
- {name: never, version: 1.0.0, condition: never.enabled}
`)},
		{Name: "values.yaml", Data: []byte("replicas: 1\nnever: {enabled: false}\n")},
		{Name: "values.schema.json", Data: []byte(`{"properties": {"replicas": {"type": "integer"}}}`)},
		{Name: "crds/crds.yaml", Data: []byte(crd("ones", "One") + crd("twos", "Two"))},
		{Name: "charts/always/Chart.yaml", Data: []byte("apiVersion: v2\nname: always\nversion: 1.0.0\n")},
		{Name: "charts/always/crds/crd.yaml", Data: []byte(crd("threes", "Three"))},
		{Name: "charts/never/Chart.yaml", Data: []byte("apiVersion: v2\nname: never\nversion: 1.0.0\n")},
		{Name: "charts/never/crds/crd.yaml", Data: []byte(crd("fours", "Four"))},
		{Name: "templates/deployment.yaml", Data: []byte(`apiVersion: apps/v1
kind: Deployment
metadata: {name: manager}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec: {containers: [{name: manager, image: registry.example.com/manager:v1}]}
`)},
		{Name: "templates/hook.yaml", Data: []byte(`apiVersion: batch/v1
kind: Job
metadata:
  name: hook
  annotations: {helm.sh/hook: "post-install"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: hook, image: registry.example.com/hook:v1}]
`)},
	}
}
