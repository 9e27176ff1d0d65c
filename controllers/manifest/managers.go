package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/managers"
)

const (
	// caVolume, caFolder and caKey are where containers find the CA certificates.
	caVolume = "capstan-ca"
	caFolder = "/etc/capstan/ca"
	caKey    = "ca.crt"

	// caVariable has the folders in which Go's programs look for CA certificates, besides the file of the image, and
	// caFolders are their defaults on Linux with the additional one.
	caVariable = "SSL_CERT_DIR"
	caFolders  = "/etc/ssl/certs:/etc/pki/tls/certs:" + caFolder
)

// caConfigMap returns the ConfigMap with the CA certificates for a provider. Its name depends on the certificates:
// programs read them only when they start, so pods have to be replaced with them.
func caConfigMap(ca, namespace, label string) *unstructured.Unstructured {
	configMap := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"immutable":  true,
		"data":       map[string]any{caKey: ca},
	}}
	configMap.SetNamespace(namespace)
	configMap.SetName(caConfigMapName(ca, label))
	configMap.SetLabels(map[string]string{v1alpha2.ClusterctlLabel: "", v1alpha2.ClusterctlProviderLabel: label})

	return configMap
}

func caConfigMapName(ca, label string) string {
	sum := sha256.Sum256([]byte(ca))
	return label + "-ca-" + hex.EncodeToString(sum[:])[:10]
}

// applySettings changes the pods of a provider's Deployment. What the Deployment sets itself takes precedence.
func applySettings(settings *managers.Settings, deployment *unstructured.Unstructured, label string) {
	pod := bundle.NestedMap(deployment.Object, "spec", "template", "spec")
	if pod == nil || settings == nil {
		return
	}

	for _, name := range settings.ImagePullSecrets {
		appendMissing(pod, "imagePullSecrets", "name", map[string]any{"name": name})
	}

	variables := settings.Environment

	if settings.CA != "" {
		configMap := map[string]any{"name": caConfigMapName(settings.CA, label)}
		appendMissing(pod, "volumes", "name", map[string]any{"name": caVolume, "configMap": configMap})

		variables = slices.Concat([]managers.Variable{{Name: caVariable, Value: caFolders}}, variables)
	}

	containers := slices.Concat(bundle.NestedMaps(pod, "initContainers"), bundle.NestedMaps(pod, "containers"))
	for _, container := range containers {
		for _, v := range variables {
			appendMissing(container, "env", "name", map[string]any{"name": v.Name, "value": v.Value})
		}

		if settings.CA != "" {
			appendMissing(container, "volumeMounts", "mountPath",
				map[string]any{"name": caVolume, "mountPath": caFolder, "readOnly": true})
		}
	}
}

// appendMissing appends an element to a list of an object unless the list has one with the same value for the key.
func appendMissing(parent map[string]any, list, key string, element map[string]any) {
	elements, isList := parent[list].([]any)
	if !isList && parent[list] != nil {
		return // refused when the release is installed
	}

	for _, existing := range bundle.NestedMaps(parent, list) {
		if existing[key] == element[key] {
			return
		}
	}

	parent[list] = append(elements, element)
}
