package testproviders

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// WriteLarge writes a generated release of 1.3 MB into a folder of providers, in the same layout. Like
// the largest real releases it mostly consists of the schemas of CRDs.
func WriteLarge(folder string) error {
	version := filepath.Join(folder, "infrastructure-large", "v1.0.0")
	if err := os.MkdirAll(version, 0o755); err != nil {
		return err
	}

	var components strings.Builder
	components.WriteString(largeHead)

	for i := range 10 {
		kind := fmt.Sprintf("Large%c", 'A'+rune(i))
		name := strings.ToLower(kind)
		fmt.Fprintf(&components, largeCRD, name, kind)

		for _, api := range []string{"v1beta1", "v1beta2"} {
			fmt.Fprintf(&components, largeVersion, api, kind, api == "v1beta2")
			writeProperties(&components, strings.Repeat(" ", 12), 3)
		}
	}

	if err := os.WriteFile(filepath.Join(version, "metadata.yaml"), []byte(largeMetadata), 0o600); err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(version, "infrastructure-components.yaml"), []byte(components.String()), 0o600)
}

// writeProperties writes the schema of an object in the style of controller-gen.
func writeProperties(w *strings.Builder, indent string, depth int) {
	fmt.Fprintf(w, "%sproperties:\n", indent)

	for i := range 4 {
		fmt.Fprintf(w, "%s  field%d:\n%s    description: |-\n%s      Field %d of %d levels configures something.\n"+
			"%s      It should be left empty unless you know why: \"{{ .default }}\" is usually right.\n",
			indent, i, indent, indent, i, depth, indent)

		switch {
		case depth > 0 && i < 3:
			writeProperties(w, indent+"    ", depth-1)
			fmt.Fprintf(w, "%s    required:\n%s    - field3\n%s    type: object\n", indent, indent, indent)
		case i%2 == 0:
			fmt.Fprintf(w, "%s    format: int32\n%s    minimum: %d\n%s    type: integer\n", indent, indent, i, indent)
		default:
			fmt.Fprintf(w, "%s    maxLength: 253\n%s    pattern: ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$\n%s    type: string\n",
				indent, indent, indent)
		}
	}
}

const largeMetadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- contract: v1beta2
  major: 1
  minor: 0
`

const largeHead = `apiVersion: v1
kind: Namespace
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-large
  name: large-system
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-large
    control-plane: controller-manager
  name: large-controller-manager
  namespace: large-system
spec:
  replicas: ${LARGE_REPLICAS:=1}
  selector:
    matchLabels:
      control-plane: controller-manager
  template:
    metadata:
      labels:
        control-plane: controller-manager
    spec:
      containers:
      - args:
        - --feature-gates=One=${LARGE_ONE:=false},Two=${LARGE_TWO:=true}
        image: registry.example.com/large/manager:v1.0.0
        name: manager
`

// largeCRD is the head of a CRD with a name and a kind.
const largeCRD = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.19.0
  labels:
    cluster.x-k8s.io/provider: infrastructure-large
    cluster.x-k8s.io/v1beta1: v1beta1
    cluster.x-k8s.io/v1beta2: v1beta2
  name: %[1]ss.infrastructure.cluster.x-k8s.io
spec:
  group: infrastructure.cluster.x-k8s.io
  names:
    categories:
    - cluster-api
    kind: %[2]s
    listKind: %[2]sList
    plural: %[1]ss
    singular: %[1]s
  scope: Namespaced
  versions:
`

// largeVersion is the beginning of an API version with its name, a kind, and whether it is stored.
const largeVersion = `  - name: %[1]s
    served: true
    storage: %[3]t
    schema:
      openAPIV3Schema:
        description: %[2]s is the Schema for the large API
          of a generated provider.
        type: object
        properties:
          spec:
            type: object
`
