package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/controllers/takeover"
)

// injectAnnotation makes cert-manager write a CA into the conversion webhook.
const injectAnnotation = "cert-manager.io/inject-ca-from"

// handOver returns the merge patch that removes what cluster-api-operator needs in a live CustomResourceDefinition
// and Capstan does not: the conversion webhook, which stops to respond with that operator, the certificate for it,
// and the label by which its objects are deleted. It returns nil if there is nothing to remove.
//
// Capstan's CustomResourceDefinition has one version, so nothing is converted. It fails if objects may be stored in
// another version: without the webhook they could no longer be read.
func handOver(live, definition *unstructured.Unstructured) ([]byte, error) {
	_, labelled := live.GetLabels()[takeover.PredecessorLabel]
	_, injected := live.GetAnnotations()[injectAnnotation]
	converted := conversionStrategy(live) == "Webhook"

	if !labelled && !injected && !converted {
		return nil, nil
	}

	if others := otherStoredVersions(live, definition); converted && len(others) > 0 {
		return nil, fmt.Errorf("objects may be stored in version %s, and only the conversion webhook of "+
			"cluster-api-operator can read them; first upgrade that to a version that no longer has this one",
			strings.Join(others, ", "))
	}

	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": live.GetResourceVersion(),
		"labels":          map[string]any{takeover.PredecessorLabel: nil},
		"annotations":     map[string]any{injectAnnotation: nil},
	}}
	if converted {
		patch["spec"] = map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}
	}

	return json.Marshal(patch)
}

func conversionStrategy(crd *unstructured.Unstructured) string {
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	return strategy
}

// otherStoredVersions returns the versions in which objects may be stored, and that the definition does not have.
func otherStoredVersions(live, definition *unstructured.Unstructured) []string {
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")

	return slices.DeleteFunc(stored, func(name string) bool {
		return slices.ContainsFunc(versions, func(version any) bool {
			return version.(map[string]any)["name"] == name
		})
	})
}
