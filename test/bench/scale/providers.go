package main

import (
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/test/harness"
)

// smallComponents are the components of a small provider: one kind, and a manager with the usual
// permissions. @ is replaced by its name.
const smallComponents = `apiVersion: v1
kind: Namespace
metadata:
  name: @-system
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: @s.scale.cluster.x-k8s.io
spec:
  group: scale.cluster.x-k8s.io
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
- apiGroups: [scale.cluster.x-k8s.io]
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
        image: registry.example.com/@:v1.0.0
        args: ["--level=${LEVEL:=info}"]
`

const smallMetadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta2}
`

// smallNamespaces is the number of namespaces of the small providers.
const smallNamespaces = 20

// small returns the first n small providers: core, and infrastructure providers.
func small(n int) []*harness.Release {
	releases := make([]*harness.Release, n)
	for i := range releases {
		providerType, name, object := v1alpha2.InfrastructureProviderType, fmt.Sprintf("s-%03d", i), fmt.Sprintf("s%03d", i)
		if i == 0 {
			providerType, name = v1alpha2.CoreProviderType, v1alpha2.CoreProviderName
		}

		releases[i] = &harness.Release{
			Type: providerType, Namespace: fmt.Sprintf("scale-%02d", i%smallNamespaces),
			Bundle: &bundle.Bundle{
				Provider: source.Provider(providerType, name), Version: "v1.0.0",
				Components: []byte(strings.ReplaceAll(smallComponents, "@", object)), Metadata: []byte(smallMetadata),
			},
		}
	}

	return releases
}
