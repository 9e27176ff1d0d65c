package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/charts"
	"github.com/capstan-project/capstan/controllers/takeover"
)

func TestHandOver(t *testing.T) {
	definitions, err := charts.CRDs()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	const (
		metadata = `"metadata": {"resourceVersion": "7",
			"labels": {"clusterctl.cluster.x-k8s.io/core": null}, "annotations": {"cert-manager.io/inject-ca-from": null}}`
		conversion = `"spec": {"conversion": {"strategy": "None", "webhook": null}}`
	)

	label := func(o *unstructured.Unstructured) { o.SetLabels(takeover.PredecessorLabels()) }
	inject := func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{injectAnnotation: "a/b"}) }
	convert := func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "Webhook", "spec", "conversion", "strategy")
	}
	store := func(versions ...string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedStringSlice(o.Object, versions, "status", "storedVersions")
		}
	}

	for name, c := range map[string]struct {
		changes     []func(*unstructured.Unstructured)
		want, fails string
	}{
		"Capstan's own":     {changes: []func(*unstructured.Unstructured){store("v1alpha2")}},
		"a label":           {changes: []func(*unstructured.Unstructured){label}, want: "{" + metadata + "}"},
		"without a webhook": {changes: []func(*unstructured.Unstructured){inject}, want: "{" + metadata + "}"},
		"an old one": {
			changes: []func(*unstructured.Unstructured){label, store("v1alpha1")},
			want:    "{" + metadata + "}",
		},
		"with a webhook": {
			changes: []func(*unstructured.Unstructured){label, inject, convert, store("v1alpha2")},
			want:    "{" + metadata + "," + conversion + "}",
		},
		"with objects of an old version": {
			changes: []func(*unstructured.Unstructured){convert, store("v1alpha1", "v1alpha2")},
			fails:   "stored in version v1alpha1, and only the conversion webhook of cluster-api-operator can read them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live := definitions[0].DeepCopy()
			live.SetResourceVersion("7")

			for _, change := range c.changes {
				change(live)
			}

			patch, err := handOver(live, definitions[0])

			switch {
			case c.fails != "":
				g.Expect(err).To(MatchError(ContainSubstring(c.fails)))
			case c.want == "":
				g.Expect(patch, err).To(BeNil())
			default:
				g.Expect(patch, err).To(MatchJSON(c.want))
			}
		})
	}
}
