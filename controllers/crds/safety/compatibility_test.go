package safety_test

import (
	"testing"

	. "github.com/onsi/gomega"

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
	const (
		a         = "{type: object, properties: {a: {type: string}}}"
		aShort    = "{type: object, properties: {a: {type: string, maxLength: 5}}}"
		aInteger  = "{type: object, properties: {a: {type: integer}}}"
		aRequired = "{type: object, properties: {a: {type: string}}, required: [a]}"
		b         = "{type: object, properties: {b: {type: string}}}"
		ab        = "{type: object, properties: {a: {type: string}, b: {type: string}}}"
		bRequired = "{type: object, properties: {a: {type: string}, b: {type: string}}, required: [b]}"
		bDefault  = "{type: object, properties: {a: {type: string}, b: {type: string, default: x}}, required: [b]}"
	)

	newer := func(d *crd) {
		v := d.Spec.Versions[0].DeepCopy()
		v.Name, d.Spec.Versions[0].Storage = "v2", false
		d.Spec.Versions = append(d.Spec.Versions, *v)
	}

	for _, c := range []struct {
		name           string
		required, live func(*crd)
		want           []safety.Finding
	}{
		{
			name:     "the same",
			required: unchanged,
			live:     unchanged,
		},
		{
			name:     "newer, with more fields and versions, and less strict",
			required: spec(aShort),
			live:     both(spec(ab), newer),
		},
		{
			name:     "the managers' version is not served",
			required: unchanged,
			live:     func(d *crd) { d.Spec.Versions[0].Served = false },
			want:     []safety.Finding{{Version: "v1", Rule: safety.RuleServedVersionMissing, Level: safety.Error}},
		},
		{
			name:     "another version is missing",
			required: unchanged,
			live:     removeVersion,
			want: []safety.Finding{
				{Version: "v1alpha1", Rule: safety.RuleServedVersionMissing, Level: safety.Warning},
			},
		},
		{
			name:     "a version is not served that need not be",
			required: stopServing,
			live:     stopServing,
		},
		{
			name:     "a field that managers write is missing",
			required: spec(a),
			live:     spec(b),
			want: []safety.Finding{
				{Version: "v1", Path: "spec.a", Rule: safety.RuleFieldRemoved, Level: safety.Error},
			},
		},
		{
			name:     "a field has another type",
			required: spec(a),
			live:     spec(aInteger),
			want: []safety.Finding{
				{Version: "v1", Path: "spec.a", Rule: safety.RuleTypeChanged, Level: safety.Error},
			},
		},
		{
			name:     "a field is required that managers do not know",
			required: spec(a),
			live:     spec(bRequired),
			want: []safety.Finding{
				{Version: "v1", Path: "spec.b", Rule: safety.RuleFieldRequired, Level: safety.Error},
			},
		},
		{
			name:     "a field is required and has a default",
			required: spec(a),
			live:     spec(bDefault),
		},
		{
			name:     "a field is required that managers know",
			required: spec(a),
			live:     spec(aRequired),
			want: []safety.Finding{
				{Version: "v1", Path: "spec.a", Rule: safety.RuleFieldRequired, Level: safety.Warning},
			},
		},
		{
			name:     "a field is stricter",
			required: spec(a),
			live:     spec(aShort),
			want: []safety.Finding{
				{Version: "v1", Path: "spec.a", Rule: safety.RuleMaxLengthLowered, Level: safety.Warning},
			},
		},
		{
			name:     "another scope",
			required: unchanged,
			live:     clusterScoped,
			want:     []safety.Finding{{Rule: safety.RuleScopeChanged, Level: safety.Error}},
		},
		{
			name:     "objects are stored in a version that the managers' webhook cannot convert",
			required: webhook("x"),
			live:     both(webhook("x"), newer, stored("v1", "v2")),
			want: []safety.Finding{
				{Version: "v2", Rule: safety.RuleVersionNotConvertible, Level: safety.Error},
			},
		},
		{
			name:     "another provider's webhook converts",
			required: webhook("x"),
			live:     both(webhook("y"), newer, stored("v1", "v2")),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			required, live := v1alpha1(), v1alpha1()
			c.required(required)
			c.live(live)
			report := safety.CheckCompatibility(required, live)
			g.Expect(found(report)).To(Equal(c.want), "%s", report)
		})
	}

	t.Run("missing", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(safety.CheckCompatibility(v1alpha1(), nil).Message()).
			To(Equal("samples.example.com: the cluster does not have this CustomResourceDefinition; " +
				"ask its owner to install it"))
	})
}
