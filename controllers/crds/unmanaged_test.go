package crds

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// crdOf returns a CRD whose versions v1, which is stored, and v1alpha1 have a spec with a schema.
func crdOf(t *testing.T, spec string, changes ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.
	CustomResourceDefinition {
	t.Helper()

	schema := apiextensionsv1.JSONSchemaProps{}
	NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(spec), &schema)).To(Succeed())

	d := definitionOf("x", "v1", "v1alpha1")
	for i := range d.Spec.Versions {
		d.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"] = schema
	}

	for _, change := range changes {
		change(d)
	}

	return d
}

func TestUnusableVersions(t *testing.T) {
	type change = func(*apiextensionsv1.CustomResourceDefinition)

	webhook := func(service string) change {
		return func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{
					Service: &apiextensionsv1.ServiceReference{Name: service, Namespace: "system"},
				}},
			}
		}
	}
	newer := func(d *apiextensionsv1.CustomResourceDefinition) {
		v := d.Spec.Versions[0].DeepCopy()
		v.Name, d.Spec.Versions[0].Storage = "v2", false
		d.Spec.Versions = append(d.Spec.Versions, *v)
	}
	unserved := func(i int) change {
		return func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[i].Served = false }
	}

	for name, c := range map[string]struct {
		packaged, live []change
		want           string
	}{
		"the same":                            {},
		"a newer version is stored":           {live: []change{newer}},
		"the managers' version is not served": {live: []change{unserved(0)}, want: "does not serve the version v1"},
		"a version of clients is not served":  {live: []change{unserved(1)}},
		"the managers' webhook converts":      {packaged: []change{webhook("x")}, live: []change{webhook("x")}},
		"another provider's webhook converts": {packaged: []change{webhook("x")}, live: []change{webhook("y"), newer}},
		"the managers' webhook cannot convert": {
			packaged: []change{webhook("x")}, live: []change{webhook("x"), newer},
			want: "may have objects stored in the version v2, which their conversion webhook does not know",
		},
		"another scope": {
			live: []change{func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Scope = apiextensionsv1.ClusterScoped }},
			want: "has the scope Cluster instead of Namespaced",
		},
	} {
		t.Run(name, func(t *testing.T) {
			const spec = "{type: object}"

			var want []string
			if c.want != "" {
				want = []string{c.want}
			}

			NewWithT(t).Expect(unusableVersions(crdOf(t, spec, c.packaged...), crdOf(t, spec, c.live...))).To(Equal(want))
		})
	}
}

func TestUnusableFields(t *testing.T) {
	const a = "{type: object, properties: {a: {type: string}}}"

	for name, c := range map[string]struct {
		packaged, live string
		want           []string
	}{
		"the same":     {a, a, nil},
		"more fields":  {a, "{type: object, properties: {a: {type: string}, b: {type: string}}}", nil},
		"stricter":     {a, "{type: object, properties: {a: {type: string, maxLength: 5}}}", nil},
		"a field less": {a, "{type: object, properties: {b: {type: string}}}", []string{"lacks the field spec.a"}},
		"no fields": {
			"{type: object, properties: {x: " + a + "}}", "{type: object}", []string{"lacks the field spec.x"},
		},
		"another type":   {a, "{type: object, properties: {a: {type: integer}}}", []string{"has another type in spec.a"}},
		"unknown fields": {a, "{type: object, x-kubernetes-preserve-unknown-fields: true}", nil},
		"a field less in the items of a list": {
			"{type: array, items: " + a + "}", "{type: array, items: {type: object, properties: {b: {type: string}}}}",
			[]string{"lacks the field spec[*].a"},
		},
		"a required field that managers know": {a, "{type: object, properties: {a: {type: string}}, required: [a]}", nil},
		"a required field that managers do not know": {
			a, "{type: object, properties: {a: {type: string}, b: {type: string}}, required: [b]}",
			[]string{"requires the field spec.b"},
		},
		"a required field with a default": {
			a, "{type: object, properties: {a: {type: string}, b: {type: string, default: x}}, required: [b]}", nil,
		},
		"alternatives that the managers' CRD does not have": {
			a, "{type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}",
			nil,
		},
		"a required field besides alternatives": {
			a, "{type: object, properties: {a: {type: string}, b: {type: string}}, required: [b], anyOf: [{required: [a]}]}",
			[]string{"requires the field spec.b"},
		},
		"a required field in one that managers do not know": {
			a, "{type: object, properties: {a: {type: string}, b: {type: object, properties: {c: {type: string}}, " +
				"required: [c]}}}", nil,
		},
		"an integer or text instead of an integer": {
			"{type: integer}", "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", nil,
		},
		"an integer instead of an integer or text": {
			"{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", "{type: integer}",
			[]string{"has another type in spec"},
		},
		"a number instead of an integer": {"{type: integer}", "{type: number}", nil},
		"anything instead of a text":     {"{type: string}", "{x-kubernetes-preserve-unknown-fields: true}", nil},
		"a field less in the values of a map": {
			"{type: object, additionalProperties: " + a + "}",
			"{type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}",
			[]string{"lacks the field spec[*].a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(unusableFields(crdOf(t, c.packaged), crdOf(t, c.live))).To(Equal(c.want))
		})
	}
}
