package charts

import (
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// groups are the API groups of providers; a type without one has no kinds.
var groups = map[v1alpha2.ProviderType]string{
	v1alpha2.InfrastructureProviderType: "infrastructure.cluster.x-k8s.io",
	v1alpha2.BootstrapProviderType:      "bootstrap.cluster.x-k8s.io",
	v1alpha2.ControlPlaneProviderType:   "controlplane.cluster.x-k8s.io",
	v1alpha2.IPAMProviderType:           "ipam.cluster.x-k8s.io",
}

// kind is a kind of a provider.
type kind struct {
	Provider *data
	// Kind is its name; in the table of kinds, only what follows the prefix.
	Kind string
	// Spec and Status are the fields that the contract of Cluster API has, as OpenAPI properties in YAML. A kind
	// without a status has no controller.
	Spec, Status string
	// Scale is the subresource, in YAML; empty for none.
	Scale string
}

func (k kind) Singular() string { return strings.ToLower(k.Kind) }

func (k kind) Plural() string { return k.Singular() + "s" }

// Fields of several kinds.
const (
	templateSpec = `
template:
  type: object
  properties:
    metadata: {type: object, x-kubernetes-preserve-unknown-fields: true}
    spec: {type: object, x-kubernetes-preserve-unknown-fields: true}`

	conditionsStatus = `
conditions:
  type: array
  items: {type: object, x-kubernetes-preserve-unknown-fields: true}`

	provisionedStatus = `
initialization:
  type: object
  properties:
    provisioned: {type: boolean}
failureDomains:
  type: array
  items: {type: object, x-kubernetes-preserve-unknown-fields: true}` + conditionsStatus
)

// kinds are those that Cluster API's contract requires of a provider.
var kinds = map[v1alpha2.ProviderType][]kind{
	v1alpha2.InfrastructureProviderType: {
		{Kind: "Cluster", Status: provisionedStatus, Spec: `
controlPlaneEndpoint:
  type: object
  properties:
    host: {type: string, minLength: 1}
    port: {type: integer, format: int32, minimum: 1, maximum: 65535}`},
		{Kind: "ClusterTemplate", Spec: templateSpec},
		{Kind: "Machine", Spec: `providerID: {type: string, minLength: 1, maxLength: 512}`, Status: `
initialization:
  type: object
  properties:
    provisioned: {type: boolean}
failureDomain: {type: string}
addresses:
  type: array
  items: {type: object, x-kubernetes-preserve-unknown-fields: true}` + conditionsStatus},
		{Kind: "MachineTemplate", Spec: templateSpec},
	},
	v1alpha2.BootstrapProviderType: {
		{Kind: "Config", Spec: `format: {type: string}`, Status: `
initialization:
  type: object
  properties:
    dataSecretCreated: {type: boolean}
dataSecretName: {type: string, minLength: 1}` + conditionsStatus},
		{Kind: "ConfigTemplate", Spec: templateSpec},
	},
	v1alpha2.ControlPlaneProviderType: {
		{
			Kind: "ControlPlane",
			Spec: `
version: {type: string, minLength: 1}
replicas: {type: integer, format: int32, minimum: 0}
machineTemplate:
  type: object
  properties:
    metadata:
      type: object
      properties:
        labels: {type: object, additionalProperties: {type: string}}
        annotations: {type: object, additionalProperties: {type: string}}
    spec:
      type: object
      properties:
        infrastructureRef:
          type: object
          properties:
            apiGroup: {type: string}
            kind: {type: string}
            name: {type: string}
        deletion:
          type: object
          properties:
            nodeDrainTimeoutSeconds: {type: integer, format: int32}
            nodeVolumeDetachTimeoutSeconds: {type: integer, format: int32}
            nodeDeletionTimeoutSeconds: {type: integer, format: int32}`,
			Status: `
initialization:
  type: object
  properties:
    controlPlaneInitialized: {type: boolean}
version: {type: string, minLength: 1}
selector: {type: string, minLength: 1}
replicas: {type: integer, format: int32}
readyReplicas: {type: integer, format: int32}
availableReplicas: {type: integer, format: int32}
upToDateReplicas: {type: integer, format: int32}` + conditionsStatus,
			Scale: "{specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, " +
				"labelSelectorPath: .status.selector}",
		},
		{Kind: "ControlPlaneTemplate", Spec: templateSpec},
	},
	v1alpha2.IPAMProviderType: {
		{Kind: "IPPool", Spec: `
addresses:
  type: array
  items: {type: string}`, Status: conditionsStatus},
	},
}
