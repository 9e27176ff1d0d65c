package apply

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/object"
)

func TestScales(t *testing.T) {
	manager := object.Key{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Namespace:        "ns",
		Name:             "manager",
	}
	header := func(kind string) string { return "{" + kind + ", metadata: {namespace: ns}, spec: {scaleTargetRef: " }
	hpa := header("apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler")
	older := header("apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler")
	keda := header("apiVersion: keda.sh/v1alpha1, kind: ScaledObject")
	other := header("apiVersion: v1, kind: ConfigMap")

	for name, tt := range map[string]struct {
		autoscaler string
		want       bool
	}{
		"the object":          {hpa + "{apiVersion: apps/v1, kind: Deployment, name: manager}}}", true},
		"in another version":  {hpa + "{apiVersion: apps/v1beta1, kind: Deployment, name: manager}}}", true},
		"by an older API":     {older + "{kind: Deployment, name: manager}}}", true},
		"KEDA's default kind": {keda + "{name: manager}}}", true},
		"another name":        {hpa + "{apiVersion: apps/v1, kind: Deployment, name: other}}}", false},
		"another kind":        {hpa + "{apiVersion: apps/v1, kind: StatefulSet, name: manager}}}", false},
		"another group":       {hpa + "{apiVersion: example.org/v1, kind: Deployment, name: manager}}}", false},
		"an invalid group":    {hpa + "{apiVersion: a/b/c, kind: Deployment, name: manager}}}", false},
		"no reference":        {hpa + "{}}}", false},
		"no autoscaler":       {other + "{apiVersion: apps/v1, kind: Deployment, name: manager}}}", false},
		"in another namespace": {
			strings.Replace(keda, "ns", "other", 1) + "{name: manager}}}", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(scales(parse(t, tt.autoscaler), manager)).To(Equal(tt.want))
		})
	}
}

func TestMayHaveScaled(t *testing.T) {
	for name, tt := range map[string]struct {
		desired, live string
		want          bool
	}{
		"other replicas":              {"spec: {replicas: 1}", "spec: {replicas: 3}", true},
		"scaled to zero":              {"spec: {replicas: 1}", "spec: {replicas: 0}", true},
		"more than the default":       {"spec: {}", "spec: {replicas: 3}", true},
		"the same replicas":           {"spec: {replicas: 3}", "spec: {replicas: 3}", false},
		"the default":                 {"spec: {}", "spec: {replicas: 1}", false},
		"an object without the field": {"spec: {replicas: 2}", "spec: {}", false},
		"the provider is paused":      {"spec: {replicas: 0}", "spec: {replicas: 3}", false},
		"the provider was paused": {
			"spec: {replicas: 2}", "{metadata: {annotations: {capstan.dev/paused-replicas: '2'}}, spec: {replicas: 0}}", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := mayHaveScaled(parse(t, tt.desired), parse(t, tt.live))
			NewWithT(t).Expect(got).To(Equal(tt.want))
		})
	}
}
