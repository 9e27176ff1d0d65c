// Package node runs the operator's image, installed with its chart, on a real node. `make e2e-node`
// runs it.
package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// managerImage is the image of the sample providers' managers, without a tag.
const managerImage = "example.org/manager"

// metadata assigns core's contract to every version.
const metadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta2}
- {major: 1, minor: 1, contract: v1beta2}
- {major: 1, minor: 2, contract: v1beta2}
- {major: 1, minor: 3, contract: v1beta2}
`

// components returns the components of a provider with one manager that needs no certificate.
const components = `apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: LABEL-manager}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: LABEL-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: LABEL-manager}
subjects: [{kind: ServiceAccount, name: manager, namespace: NAMESPACE}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: NAMESPACE}
spec:
  replicas: 2
  selector: {matchLabels: {app: LABEL}}
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    metadata: {labels: {app: LABEL}}
    spec:
      serviceAccountName: manager
      terminationGracePeriodSeconds: 2
      securityContext: {runAsNonRoot: true}
      containers:
      - name: manager
        image: IMAGE
        imagePullPolicy: Never
        args: [ARGS]
        ports: [{name: health, containerPort: 9440}]
        readinessProbe: {httpGet: {path: /readyz, port: health}, periodSeconds: 1}
`

// sample is one version of a sample provider.
type sample struct {
	label, version, namespace string
	args                      []string
}

// write adds the version to a local repository. The image's tag is the version.
func (s sample) write(repository string) error {
	folder := filepath.Join(repository, s.label, s.version)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}

	file := "infrastructure-components.yaml"
	if s.label == "cluster-api" {
		file = "core-components.yaml"
	}

	text := strings.NewReplacer(
		"NAMESPACE", s.namespace,
		"LABEL", s.label,
		"IMAGE", managerImage+":"+s.version,
		"ARGS", strings.Join(s.args, ", "),
	).
		Replace(components)
	for name, content := range map[string]string{file: text, "metadata.yaml": metadata} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("write sample %s %s: %w", s.label, s.version, err)
		}
	}

	return nil
}
