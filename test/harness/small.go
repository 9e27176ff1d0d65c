package harness

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/source"
)

// smallComponents are the components of a small provider: one kind, and a manager with the usual
// permissions. @ is replaced by the name of its objects, and VERSION by the version.
const smallComponents = `apiVersion: v1
kind: Namespace
metadata:
  name: @-system
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: @s.small.cluster.x-k8s.io
spec:
  group: small.cluster.x-k8s.io
  names: {kind: Kind@, listKind: Kind@List, plural: @s, singular: @}
  scope: Namespaced
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: @-manager
  namespace: @-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: @-manager
rules:
- apiGroups: [small.cluster.x-k8s.io]
  resources: [@s]
  verbs: [get, list, watch, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: @-manager
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: @-manager}
subjects:
- {kind: ServiceAccount, name: @-manager, namespace: @-system}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: @-controller-manager
  namespace: @-system
spec:
  replicas: 1
  selector: {matchLabels: {app: @}}
  template:
    metadata: {labels: {app: @}}
    spec:
      serviceAccountName: @-manager
      containers:
      - name: manager
        image: registry.example.com/@:VERSION
        args: ["--level=${LEVEL:=info}"]
`

const smallMetadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta2}
- {major: 1, minor: 1, contract: v1beta2}
`

// Small returns a release of a small provider, v1.0.x or v1.1.x, whose objects have their own name in lower
// case, without dashes. The key is that of the provider's resource.
func Small(providerType v1alpha2.ProviderType, key types.NamespacedName, object, version string) *Release {
	return &Release{
		Type: providerType, Namespace: key.Namespace,
		Bundle: &bundle.Bundle{
			Provider:   source.Provider(providerType, key.Name),
			Version:    version,
			Components: []byte(strings.NewReplacer("@", object, "VERSION", version).Replace(smallComponents)),
			Metadata:   []byte(smallMetadata),
		},
	}
}
