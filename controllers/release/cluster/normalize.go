package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// certManagerInjection are the annotations by which cert-manager fills in the certificates of an object.
var certManagerInjection = []string{
	v1alpha2.InjectCAAnnotation, "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
}

const apiServiceGroup = "apiregistration.k8s.io"

// Normalize changes an object of a manifest to what is applied. These fields would be fought about:
//   - a Secret's stringData, which the API server moves to data
//   - the rules of an aggregated ClusterRole, which Kubernetes gathers from others
//   - a caBundle that cert-manager fills in, or that is a placeholder
//   - an empty status
func Normalize(o *unstructured.Unstructured) {
	moveStringData(o)

	if isAggregated(o) {
		delete(o.Object, "rules")
	}

	for _, config := range clientConfigs(o) {
		if bundle, found := config["caBundle"]; found && (isInjected(o) || !isPEM(bundle)) {
			delete(config, "caBundle")
		}
	}

	if status, _ := o.Object["status"].(map[string]any); len(status) == 0 {
		delete(o.Object, "status")
	}
}

// moveStringData moves a Secret's stringData, which can be written but not read, to where the API
// server shows it.
func moveStringData(o *unstructured.Unstructured) {
	stringData, ok := o.Object["stringData"].(map[string]any)
	if !ok || o.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
		return
	}

	data, _ := o.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}

	for key, value := range stringData {
		if text, ok := value.(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}

	o.Object["data"] = data
	delete(o.Object, "stringData")
}

// isAggregated reports whether an object is a ClusterRole whose rules Kubernetes gathers from others.
func isAggregated(o *unstructured.Unstructured) bool {
	_, aggregated := o.Object["aggregationRule"]
	return aggregated && o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}
}

// clientConfigs returns the parts of an object that have a caBundle.
func clientConfigs(o *unstructured.Unstructured) []map[string]any {
	var configs []map[string]any

	add := func(config any) {
		if config, ok := config.(map[string]any); ok {
			configs = append(configs, config)
		}
	}

	switch o.GroupVersionKind().Group {
	case admissionregistrationv1.GroupName:
		for _, webhook := range bundle.NestedMaps(o.Object, "webhooks") {
			add(webhook["clientConfig"])
		}
	case apiextensionsv1.GroupName:
		config, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook", "clientConfig")
		add(config)
	case apiServiceGroup:
		add(o.Object["spec"])
	}

	return configs
}

func isInjected(o *unstructured.Unstructured) bool {
	annotations := o.GetAnnotations()

	for _, annotation := range certManagerInjection {
		if annotations[annotation] != "" {
			return true
		}
	}

	return false
}

// isPEM reports whether a caBundle has certificates.
func isPEM(caBundle any) bool {
	text, _ := caBundle.(string)
	decoded, err := base64.StdEncoding.DecodeString(text)
	block, _ := pem.Decode(bytes.TrimSpace(decoded))

	return err == nil && block != nil
}
