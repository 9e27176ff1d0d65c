package safety_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/controllers/crds/safety"
)

// spec sets the schema of the spec in the storage version.
func spec(text string) func(*crd) {
	c := change{name: "x", old: text}
	field := definition([]change{c}, false).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["x"]

	return func(d *crd) { d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = field }
}

func stored(versions ...string) func(*crd) {
	return func(d *crd) { d.Status.StoredVersions = versions }
}

func TestCheckCompatibility(t *testing.T) {
	none := func(*crd) {}
	known := "{type: object, properties: {a: {type: string}}}"

	newer := func(d *crd) {
		v := d.Spec.Versions[0].DeepCopy()
		v.Name, d.Spec.Versions[0].Storage = "v2", false
		d.Spec.Versions = append(d.Spec.Versions, *v)
	}
	for _, c := range []struct {
		name       string
		need, live func(*crd)
		want       []safety.Finding
	}{
		{name: "the same", need: none, live: none},
		{name: "newer, with more fields and versions, and looser", need: spec("{type: object, properties: {a: {type: string, maxLength: 5}}}"),
			live: both(spec("{type: object, properties: {a: {type: string}, b: {type: string}}}"), newer)},
		{name: "the version that managers work with is not served", need: none, live: func(d *crd) { d.Spec.Versions[0].Served = false },
			want: []safety.Finding{{Version: "v1", Rule: safety.RuleServedVersionMissing, Level: safety.Error}}},
		{name: "another version is gone", need: none, live: func(d *crd) { d.Spec.Versions = d.Spec.Versions[:1] },
			want: []safety.Finding{{Version: "v1alpha1", Rule: safety.RuleServedVersionMissing, Level: safety.Warning}}},
		{name: "a version is not served that is not needed", need: func(d *crd) { d.Spec.Versions[1].Served = false }, live: func(d *crd) { d.Spec.Versions[1].Served = false }},
		{name: "a field that managers write is gone", need: spec(known), live: spec("{type: object, properties: {b: {type: string}}}"),
			want: []safety.Finding{{Version: "v1", Path: "spec.a", Rule: safety.RuleFieldRemoved, Level: safety.Error}}},
		{name: "a field has another type", need: spec(known), live: spec("{type: object, properties: {a: {type: integer}}}"),
			want: []safety.Finding{{Version: "v1", Path: "spec.a", Rule: safety.RuleTypeChanged, Level: safety.Error}}},
		{name: "a field is required that managers do not know", need: spec(known), live: spec("{type: object, properties: {a: {type: string}, b: {type: string}}, required: [b]}"),
			want: []safety.Finding{{Version: "v1", Path: "spec.b", Rule: safety.RuleFieldRequired, Level: safety.Error}}},
		{name: "a field is required and has a default", need: spec(known), live: spec("{type: object, properties: {a: {type: string}, b: {type: string, default: x}}, required: [b]}")},
		{name: "a field is required that managers know", need: spec(known), live: spec("{type: object, properties: {a: {type: string}}, required: [a]}"),
			want: []safety.Finding{{Version: "v1", Path: "spec.a", Rule: safety.RuleFieldRequired, Level: safety.Warning}}},
		{name: "a field is stricter", need: spec(known), live: spec("{type: object, properties: {a: {type: string, maxLength: 5}}}"),
			want: []safety.Finding{{Version: "v1", Path: "spec.a", Rule: safety.RuleMaxLengthLowered, Level: safety.Warning}}},
		{name: "the scope is another", need: none, live: func(d *crd) { d.Spec.Scope = apiextensionsv1.ClusterScoped },
			want: []safety.Finding{{Rule: safety.RuleScopeChanged, Level: safety.Error}}},
		{name: "objects are stored in a version that the managers' webhook cannot convert", need: webhook("x"), live: both(webhook("x"), newer, stored("v1", "v2")),
			want: []safety.Finding{{Version: "v2", Rule: safety.RuleVersionNotConvertible, Level: safety.Error}}},
		{name: "another provider's webhook converts", need: webhook("x"), live: both(webhook("y"), newer, stored("v1", "v2"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			need, live := v1alpha1(), v1alpha1()
			c.need(need)
			c.live(live)
			report := safety.CheckCompatibility(need, live)
			g.Expect(found(report)).To(Equal(c.want), "%s", report)
		})
	}

	t.Run("missing", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(safety.CheckCompatibility(v1alpha1(), nil).Message()).
			To(Equal("samples.example.com: the cluster does not have this CustomResourceDefinition; ask its owner to install it"))
	})
}
