package trial_test

import (
	"context"
	"fmt"
	"iter"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

type crd = apiextensionsv1.CustomResourceDefinition

// v1alpha1 returns a CRD with a second version, which is served but not stored.
func v1alpha1() *crd { return withVersions("v1alpha1") }

// moved makes v1alpha1 the storage version.
func moved(d *crd) { d.Spec.Versions[0].Storage, d.Spec.Versions[1].Storage = false, true }

// withFields sets the schemas: v1alpha1 lacks spec.a, and spec.b has another type.
func withFields(d *crd) {
	d.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"b": {Type: "integer"},
		},
	}
	d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"a": {Type: "string"}, "b": {Type: "string"},
		},
	}
}

func webhook(service string) func(*crd) {
	return func(d *crd) {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig: &apiextensionsv1.WebhookClientConfig{
					Service: &apiextensionsv1.ServiceReference{Name: service, Namespace: "system"},
				},
			},
		}
	}
}

func both(changes ...func(*crd)) func(*crd) {
	return func(d *crd) {
		for _, change := range changes {
			change(d)
		}
	}
}

// written returns an object that a client wrote in a version.
func written(version string) *unstructured.Unstructured {
	o := empty("written")
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "client", APIVersion: "example.com/" + version}})

	return o
}

// Changes of the CRD that v1alpha1 returns.
func unchanged(*crd) {}

// withoutStatusField removes the status from the schema of a version.
func withoutStatusField(i int) func(*crd) {
	return func(d *crd) { delete(d.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties, "status") }
}

func removeVersion(d *crd) { d.Spec.Versions = d.Spec.Versions[:1] }
func stopServing(d *crd)   { d.Spec.Versions[1].Served = false }

// samples is the resource that the tests are about.
var samples = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "samples"}

// definition returns a CRD with the fields of changes, either their old or their new schemas.
func definition(cs []change, new bool) *apiextensionsv1.CustomResourceDefinition {
	fields := map[string]apiextensionsv1.JSONSchemaProps{}

	for _, c := range cs {
		text, field := c.old, apiextensionsv1.JSONSchemaProps{}
		if new {
			text = c.new
		}

		if err := yaml.UnmarshalStrict([]byte(text), &field); err != nil {
			panic(c.name + ": " + err.Error())
		}

		fields[c.name] = field
	}

	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{
			APIVersion: apiextensionsv1.SchemeGroupVersion.String(),
			Kind:       "CustomResourceDefinition",
		},
		ObjectMeta: metav1.ObjectMeta{Name: "samples." + samples.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: samples.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind:     "Sample",
				ListKind: "SampleList",
				Plural:   "samples",
				Singular: "sample",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{
					Name:    "v1",
					Served:  true,
					Storage: true,
					Subresources: &apiextensionsv1.CustomResourceSubresources{
						Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					},
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"spec": {Type: "object", Properties: fields},
							"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
								"phase": {Type: "string"},
							}},
						},
					}},
				},
			},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	}
}

// sample returns an object with one field of its spec, in YAML.
func sample(name, field, value string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": samples.GroupVersion().
			String(),
		"kind":     "Sample",
		"metadata": map[string]any{"name": name, "namespace": "default"},
	}}

	data, err := yaml.YAMLToJSON([]byte(value))
	if err != nil {
		panic(err)
	}

	var content any
	// Unlike encoding/json, this package decodes integers as such, as the API server does.
	if err := json.Unmarshal(data, &content); err != nil {
		panic(err)
	}

	o.Object["spec"] = map[string]any{field: content}

	return o
}

// empty returns an object without a spec.
func empty(name string) *unstructured.Unstructured {
	o := sample(name, "none", "null")
	delete(o.Object, "spec")

	return o
}

// objects are returned for any resource.
type objects []*unstructured.Unstructured

func (o objects) All(context.Context, schema.GroupVersionResource) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for _, object := range o {
			if !yield(object.DeepCopy(), nil) {
				return
			}
		}
	}
}

func (o objects) Stored(
	ctx context.Context, resource schema.GroupVersionResource,
) iter.Seq2[*unstructured.Unstructured, error] {
	return o.All(ctx, resource)
}

// withStatus returns a CRD whose status has a phase that must match a pattern.
func withStatus(pattern string) *apiextensionsv1.CustomResourceDefinition {
	crd := definition(nil, false)
	status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	status.Properties["phase"] = apiextensionsv1.JSONSchemaProps{Type: "string", Pattern: pattern}

	return crd
}

// withVersions returns a CRD that stores v1 and serves other versions with the same schema as well.
func withVersions(others ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := definition(nil, false)
	for _, name := range others {
		v := crd.Spec.Versions[0].DeepCopy()
		v.Name, v.Storage = name, false
		crd.Spec.Versions = append(crd.Spec.Versions, *v)
	}

	return crd
}

func setPhase(ctx context.Context, name, phase string, dryRun ...string) error {
	patch := fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase)
	_, err := client.Resource(samples).
		Namespace("default").
		Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun}, "status")

	return err
}
