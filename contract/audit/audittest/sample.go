package audittest

import (
	"bytes"
	_ "embed" // for the objects
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

//go:embed objects.yaml
var objects []byte

// validity is how long the certificates of the sample are valid, as those of kubeadm after some time.
const validity = 200 * 24 * time.Hour

// Healthy returns the CRDs of the sample, followed by its other objects. Owner references have no UIDs yet.
func Healthy() ([]*unstructured.Unstructured, error) {
	certificate, err := Certificate(validity)
	if err != nil {
		return nil, err
	}

	var all []*unstructured.Unstructured

	for _, crd := range CRDs(certificate) {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return nil, err
		}

		all = append(all, &unstructured.Unstructured{Object: fields})
	}

	all = append(all, configuration(certificate))

	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(objects), len(objects)); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the sample: %w", err)
		}

		all = append(all, o)
	}

	for _, o := range all {
		if o.GetName() == "one-kubeconfig" {
			setKubeconfig(validity)(o.Object)
		}
	}

	return all, nil
}

// configuration returns a webhook configuration of a provider, for a kind that does not exist.
func configuration(certificate []byte) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"webhooks": webhooks(base64.StdEncoding.EncodeToString(certificate)),
	}}
	o.SetName("example")
	o.SetLabels(map[string]string{v1alpha2.ClusterctlProviderLabel: Infrastructure})

	return o
}

// webhooks returns the webhooks of a configuration.
func webhooks(caBundle string) []any {
	return []any{map[string]any{
		"name": "example.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
		"rules": []any{map[string]any{
			"apiGroups": []any{"none.example.com"}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"},
			"resources": []any{"examples"},
		}},
		"clientConfig": map[string]any{
			"service": map[string]any{"namespace": "example-system", "name": "webhook"}, "caBundle": caBundle,
		},
	}}
}

// SetOwners sets the UIDs in the owner references of an object.
func SetOwners(o *unstructured.Unstructured, uid func(kind, name string) types.UID) {
	owners := o.GetOwnerReferences()
	for i := range owners {
		if owners[i].UID == "" {
			owners[i].UID = uid(owners[i].Kind, owners[i].Name)
		}
	}

	if len(owners) > 0 {
		o.SetOwnerReferences(owners)
	}
}

// setKubeconfig returns an edit that sets the kubeconfig in a Secret.
func setKubeconfig(expires time.Duration) Edit {
	return func(fields map[string]any) {
		kubeconfig, err := Kubeconfig(expires)
		if err != nil {
			panic(err) // the random numbers of the system are used up, which never happens
		}

		fields["data"] = map[string]any{"value": base64.StdEncoding.EncodeToString(kubeconfig)}
	}
}
