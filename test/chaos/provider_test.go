package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/test/model"
)

// Names of the provider.
const (
	name      = "chaos"
	namespace = "chaos-system"
	release   = "infrastructure-chaos"
	manager   = "chaos-controller-manager"
	variables = "chaos-variables"
	crd       = "chaoses.infrastructure.cluster.x-k8s.io"
)

// metadata covers all versions of the model's catalog.
const metadata = `
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta1}
- {major: 1, minor: 1, contract: v1beta1}
- {major: 1, minor: 2, contract: v1beta1}
- {major: 1, minor: 3, contract: v1beta1}
- {major: 2, minor: 0, contract: v1beta2}
- {major: 2, minor: 1, contract: v1beta2}
- {major: 2, minor: 2, contract: v1beta2}
- {major: 3, minor: 0, contract: v1beta2}
`

// labels select the ConfigMaps with the provider's versions.
var labels = map[string]string{"provider": name}

// components returns the components of a version of the model's catalog.
func components(v model.Version) string {
	image := name
	if v.Flaw == model.NeverHealthy {
		image = "never-pulled"
	}

	schema := "{type: object}"
	if v.Flaw == model.Unsafe {
		schema = "{type: object, required: [spec], properties: {spec: {type: object}}}"
	}

	served := &strings.Builder{}
	for i, version := range v.Stored {
		fmt.Fprintf(served, "  - {name: %s, served: true, storage: %v, schema: {openAPIV3Schema: %s}}\n",
			version, i == 0, schema)
	}

	text := fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata:
  name: %[1]s
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[2]s
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: Chaos, listKind: ChaosList, plural: chaoses, singular: chaos}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: chaos-webhook-service, namespace: %[1]s, path: /convert}}
  versions:
%[3]s---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[4]s
  namespace: %[1]s
spec:
  replicas: 1
  selector: {matchLabels: {app: chaos}}
  template:
    metadata: {labels: {app: chaos}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: manager
        image: registry-0.example.com/%[5]s:%[6]s
        args: ["--level=${CHAOS_LEVEL:=0}"]
`, namespace, crd, served, manager, image, v.Name)

	for _, extra := range v.Extras {
		key := "version"
		if v.Flaw == model.Refused {
			key = "not a key"
		}

		text += fmt.Sprintf(
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: chaos-%s, namespace: %s}\ndata: {%s: %s}\n",
			extra, namespace, key, v.Name)
	}

	return text
}

// source returns the ConfigMap with a version.
func source(v model.Version) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.Name, Labels: labels},
		Data: map[string]string{
			v1alpha2.ConfigMapMetadataKey:   metadata,
			v1alpha2.ConfigMapComponentsKey: components(v),
		},
	}
}

// secret returns the Secret with variables with one of its contents.
func secret(content int) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: variables},
		StringData: map[string]string{"CHAOS_LEVEL": fmt.Sprint(content)},
	}
}

// resource returns the provider's resource.
func resource(wanted model.Wanted) *v1alpha2.InfrastructureProvider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.Version = wanted.Version
	p.Spec.Paused = wanted.Paused
	p.Spec.SecretName = variables
	p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Selector: &metav1.LabelSelector{MatchLabels: labels}}
	p.Spec.Release = &v1alpha2.ReleaseSpec{
		Timeout: &metav1.Duration{Duration: model.Timeout},
		Retries: ptr.To(int32(model.Retries)),
	}

	return p
}

// writeChart writes the chart of a version for helm, and returns its path.
func writeChart(folder string, v model.Version) (string, error) {
	built, err := chartgen.Build(&bundle.Bundle{
		Provider:   bundle.Provider{Type: "InfrastructureProvider", Name: name, Label: release},
		Version:    v.Name,
		Source:     "test",
		Metadata:   []byte(metadata),
		Components: []byte(components(v)),
	})
	if err != nil {
		return "", err
	}

	archive, err := built.Archive()
	if err != nil {
		return "", err
	}

	file := filepath.Join(folder, built.Filename())

	return file, os.WriteFile(file, archive, 0o600)
}
