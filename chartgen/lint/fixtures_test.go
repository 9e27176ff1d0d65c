package lint_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// controlPlaneProvider is a release that keeps all rules, in both contracts. What the rules look at
// is there once, so that a test can replace it.
func controlPlaneProvider() *bundle.Bundle {
	return &bundle.Bundle{
		Provider:   bundle.Provider{Type: "ControlPlaneProvider", Name: "example", Label: "control-plane-example"},
		Version:    "v1.2.3",
		Components: []byte(components),
		Metadata:   []byte(metadata),
	}
}

// infrastructureProvider is another, with templates.
func infrastructureProvider() *bundle.Bundle {
	return &bundle.Bundle{
		Provider:   bundle.Provider{Type: "InfrastructureProvider", Name: "example", Label: "infrastructure-example"},
		Version:    "v1.2.3",
		Components: []byte(strings.NewReplacer("control-plane-example", "infrastructure-example").Replace(components)),
		Metadata:   []byte(metadata),
		Templates: []bundle.File{
			{Name: "cluster-template.yaml", Data: []byte(clusterTemplate)},
			{Name: "clusterclass-other.yaml", Data: []byte(strings.ReplaceAll(clusterClass, "quick", "other"))},
			{Name: "clusterclass-quick.yaml", Data: []byte(clusterClass)},
		},
	}
}

const metadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- major: 1
  minor: 2
  contract: v1beta2
`

const components = `apiVersion: v1
kind: Namespace
metadata:
  labels: {cluster.x-k8s.io/provider: control-plane-example}
  name: example-system
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    cert-manager.io/inject-ca-from: example-system/example-cert
  labels:
    cluster.x-k8s.io/provider: control-plane-example
    cluster.x-k8s.io/v1beta1: v1alpha1_v1beta1
    cluster.x-k8s.io/v1beta2: v1beta2
  name: examplecontrolplanes.controlplane.cluster.x-k8s.io
spec:
  group: controlplane.cluster.x-k8s.io
  names: {kind: ExampleControlPlane, plural: examplecontrolplanes}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service: {name: example-webhook, namespace: example-system}
  versions:
  - name: v1alpha1
    served: false
  - name: v1beta1
    served: true
    subresources:
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
      status: {}
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              replicas: {type: integer}
              version: {type: string}
              machineTemplate:
                properties:
                  metadata: {properties: {labels: {type: object}, annotations: {type: object}}}
                  infrastructureRef: {properties: {apiVersion: {type: string}, kind: {type: string}, name: {type: string}}}
                  nodeDrainTimeout: {type: string}
                  nodeVolumeDetachTimeout: {type: string}
                  nodeDeletionTimeout: {type: string}
          status:
            properties:
              initialized: {type: boolean}
              ready: {type: boolean}
              replicas: {type: integer}
              readyReplicas: {type: integer}
              updatedReplicas: {type: integer}
              unavailableReplicas: {type: integer}
              selector: {type: string}
              version: {type: string}
              failureReason: {type: string}
  - name: v1beta2
    served: true
    subresources:
      scale:
        specReplicasPath: .spec.replicas
        statusReplicasPath: .status.replicas
        labelSelectorPath: .status.selector
      status: {description: none}
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              replicas: {type: integer, minimum: 0}
              version: {type: string, minLength: 1}
              machineTemplate:
                properties:
                  metadata:
                    properties:
                      labels: {type: object}
                      annotations: {type: object}
                  spec:
                    properties:
                      infrastructureRef: {properties: {apiGroup: {type: string}, kind: {type: string}, name: {type: string}}}
                      deletion:
                        properties:
                          nodeDrainTimeoutSeconds: {type: integer}
                          nodeVolumeDetachTimeoutSeconds: {type: integer}
                          nodeDeletionTimeoutSeconds: {type: integer}
          status:
            properties:
              initialization: {properties: {controlPlaneInitialized: {type: boolean}}}
              replicas: {type: integer, minimum: 0}
              readyReplicas: {type: integer, minimum: 0}
              upToDateReplicas: {type: integer}
              availableReplicas: {type: integer}
              selector: {type: string, minLength: 1}
              versions: {type: array}
              externalManagedControlPlane: {type: boolean}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  labels:
    cluster.x-k8s.io/provider: control-plane-example
    cluster.x-k8s.io/v1beta1: v1beta1
    cluster.x-k8s.io/v1beta2: v1beta1
  name: examplecontrolplanetemplates.controlplane.cluster.x-k8s.io
spec:
  group: controlplane.cluster.x-k8s.io
  names: {kind: ExampleControlPlaneTemplate, plural: examplecontrolplanetemplates}
  scope: Namespaced
  versions: [{name: v1beta1, served: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  labels:
    cluster.x-k8s.io/provider: control-plane-example
    clusterctl.cluster.x-k8s.io/move-hierarchy: ""
  name: exampleidentities.controlplane.cluster.x-k8s.io
spec:
  group: controlplane.cluster.x-k8s.io
  names: {kind: ExampleIdentity, plural: exampleidentities}
  scope: Cluster
  versions: [{name: v1beta1, served: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: v1
kind: ServiceAccount
metadata:
  labels: {cluster.x-k8s.io/provider: control-plane-example}
  name: example-manager
  namespace: example-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels: {cluster.x-k8s.io/provider: control-plane-example, cluster.x-k8s.io/aggregate-to-manager: "true"}
  name: example-role
rules:
- apiGroups: [controlplane.example.com]
  resources: [examplecontrolplanes, examplecontrolplanetemplates]
  verbs: ["*"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  labels: {cluster.x-k8s.io/provider: control-plane-example}
  name: example-rolebinding
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: example-role}
subjects:
- {kind: ServiceAccount, name: example-manager, namespace: example-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  labels: {cluster.x-k8s.io/provider: control-plane-example}
  name: example-viewer
  namespace: example-system
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {kind: Group, name: somebody}
---
apiVersion: v1
kind: Service
metadata:
  labels: {cluster.x-k8s.io/provider: control-plane-example}
  name: example-webhook
  namespace: example-system
spec:
  selector: {app: example}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels: {cluster.x-k8s.io/provider: control-plane-example}
  name: example-controller
  namespace: example-system
spec:
  template:
    metadata:
      labels: {app: example, pod: "1"}
    spec:
      serviceAccountName: example-manager
      containers:
      - name: manager
        image: registry.k8s.io/example/controller:v1.2.3
        args: [--leader-elect, --v=${EXAMPLE_VERBOSITY:=2}, "--namespace=", "--feature-gates=MachinePool=${EXP_MACHINE_POOL:=true}"]
        env:
        - name: OPTIONAL
          valueFrom: {secretKeyRef: {name: of-the-user, key: a, optional: true}}
      volumes:
      - name: cert
        secret:
          secretName: example-webhook-cert
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  labels: {cluster.x-k8s.io/provider: control-plane-example}
  name: example-issuer
  namespace: example-system
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  labels: {cluster.x-k8s.io/provider: control-plane-example}
  name: example-cert
  namespace: example-system
spec:
  issuerRef: {kind: Issuer, name: example-issuer}
  secretName: example-webhook-cert
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  annotations:
    cert-manager.io/inject-ca-from: example-system/example-cert
  labels: {cluster.x-k8s.io/provider: control-plane-example}
  name: example-validation
webhooks:
- name: one.example.com
  clientConfig:
    service: {name: example-webhook, namespace: example-system, path: /one}
- name: two.example.com
  clientConfig:
    service: {name: example-webhook, namespace: example-system, path: /two}
`

const clusterTemplate = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: ${CLUSTER_NAME}
  namespace: ${NAMESPACE}
spec:
  topology:
    classRef:
      name: quick
    version: ${KUBERNETES_VERSION}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: cni
  namespace: default
`

const clusterClass = `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata:
  name: quick
spec:
  infrastructure:
    templateRef:
      apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
      kind: ExampleClusterTemplate
      name: quick-cluster
  patches:
  - name: any
    definitions:
    - jsonPatches:
      - value: {kind: Secret, namespace: of-the-value}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: ExampleClusterTemplate
metadata:
  name: quick-cluster
`

// edit changes a file of a bundle.
type edit func(*testing.T, *bundle.Bundle)

// replace puts text in the place of other text in the components, which must be there.
func replace(oldnew ...string) edit {
	return func(t *testing.T, b *bundle.Bundle) {
		b.Components = replaced(t, b.Components, oldnew)
	}
}

// replaceMetadata does so in metadata.yaml.
func replaceMetadata(oldnew ...string) edit {
	return func(t *testing.T, b *bundle.Bundle) { b.Metadata = replaced(t, b.Metadata, oldnew) }
}

// replaceTemplate does so in a template.
func replaceTemplate(name string, oldnew ...string) edit {
	return func(t *testing.T, b *bundle.Bundle) {
		for i := range b.Templates {
			if b.Templates[i].Name == name {
				b.Templates[i].Data = replaced(t, b.Templates[i].Data, oldnew)
				return
			}
		}

		t.Fatalf("no template %s", name)
	}
}

func replaced(t *testing.T, data []byte, oldnew []string) []byte {
	t.Helper()

	text := string(data)
	for i := 0; i < len(oldnew); i += 2 {
		NewWithT(t).Expect(text).To(ContainSubstring(oldnew[i]))
		text = strings.ReplaceAll(text, oldnew[i], oldnew[i+1])
	}

	return []byte(text)
}

// with makes one edit of several.
func with(edits ...edit) edit {
	return func(t *testing.T, b *bundle.Bundle) {
		for _, e := range edits {
			e(t, b)
		}
	}
}

// v1beta1 makes the release one of contract v1beta1.
var v1beta1 = replaceMetadata("v1beta2", "v1beta1")

// none changes nothing.
func none(*testing.T, *bundle.Bundle) {}
