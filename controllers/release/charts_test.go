package release_test

import "fmt"

// Templates of the charts under test.

func configMap(name, data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  key: %q\n", name, data)
}

func serviceAccount(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: %s\n", name)
}

// clusterRole is cluster-scoped, so its name holds the namespace to keep tests apart.
const clusterRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .Release.Namespace }}-role
  creationTimestamp: null
rules:
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
`

const clusterRoleBinding = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .Release.Namespace }}-binding
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .Release.Namespace }}-role
subjects:
- kind: ServiceAccount
  name: manager
  namespace: {{ .Release.Namespace }}
`

const service = `apiVersion: v1
kind: Service
metadata:
  name: webhook
spec:
  selector: {app: manager}
  ports:
  - port: 443
`

// deployment selects pods by a label of the given value; replicas is a template expression.
func deployment(label, replicas string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: manager
spec:
  replicas: %[2]s
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      creationTimestamp: null
      labels: {app: %[1]s}
    spec:
      serviceAccountName: manager
      containers:
      - name: manager
        image: example.org/manager:v1
`, label, replicas)
}

// crd defines a kind of its own for each plural.
func crd(plural string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.release.test
spec:
  group: release.test
  scope: Namespaced
  names: {plural: %[1]s, singular: %[1]s, kind: Kind%[1]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-preserve-unknown-fields: true
`, plural)
}

func custom(plural, name string) string {
	return fmt.Sprintf(
		"apiVersion: release.test/v1\nkind: Kind%s\nmetadata:\n  name: %s\nspec:\n  a: {b: 1}\n",
		plural,
		name,
	)
}

const webhooks = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: {{ .Release.Namespace }}-webhooks
webhooks:
- name: default.release.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig:
    service: {name: webhook, namespace: {{ .Release.Namespace }}, path: /default}
  rules: [{apiGroups: [release.test], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]
`

const aggregatedRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .Release.Namespace }}-aggregated
aggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregate-to: {{ .Release.Namespace }}}}]}
rules: []
`

const secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: credentials\nstringData:\n  password: hunter2\n"

// varied has values that the API server stores in another notation.
const varied = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: varied
spec:
  selector: {matchLabels: {app: varied}}
  template:
    metadata: {labels: {app: varied}}
    spec:
      containers:
      - name: manager
        image: example.org/manager:v1
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        ports: [{name: http, containerPort: 8080}]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: "0.1"}}
`
