package safety_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/safety"
)

type crd = apiextensionsv1.CustomResourceDefinition

// v1alpha1 returns a CRD with a second version, which is served but not stored.
func v1alpha1() *crd { return withVersions("v1alpha1") }

// moved makes v1alpha1 the storage version, which lacks spec.a and in which spec.b has another type.
func moved(d *crd) {
	d.Spec.Versions[0].Storage, d.Spec.Versions[1].Storage = false, true
	d.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"b": {Type: "integer"},
		},
	}
}

func withFields(d *crd) {
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

// found returns the findings with only what the tests are about.
func found(report *safety.Report) []safety.Finding {
	var findings []safety.Finding
	for _, f := range report.Findings {
		findings = append(
			findings,
			safety.Finding{Version: f.Version, Path: f.Path, Rule: f.Rule, Level: f.Level, Affected: f.Affected},
		)
	}

	return findings
}

// Changes of the CRD that v1alpha1 returns.
func unchanged(*crd) {}

func removeVersion(d *crd)     { d.Spec.Versions = d.Spec.Versions[:1] }
func stopServing(d *crd)       { d.Spec.Versions[1].Served = false }
func deprecate(d *crd)         { d.Spec.Versions[1].Deprecated = true }
func storeBothVersions(d *crd) { d.Status.StoredVersions = []string{"v1", "v1alpha1"} }
func clusterScoped(d *crd)     { d.Spec.Scope = apiextensionsv1.ClusterScoped }
func withoutStatus(d *crd)     { d.Spec.Versions[0].Subresources = nil }

func withScale(d *crd) {
	d.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{
		Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		Scale: &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath:   ".spec.replicas",
			StatusReplicasPath: ".status.replicas",
		},
	}
}

func withSelectableField(d *crd) {
	d.Spec.Versions[0].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".status.phase"}}
}

func TestCheckDefinition(t *testing.T) {
	// removed returns the finding about the second version.
	removed := func(level safety.Level, affected int) []safety.Finding {
		return []safety.Finding{
			{Version: "v1alpha1", Rule: safety.RuleServedVersionRemoved, Level: level, Affected: affected},
		}
	}
	storageVersionChanged := safety.Finding{Rule: safety.RuleStorageVersionChanged, Level: safety.Info}

	for _, c := range []struct {
		name          string
		live, desired func(*crd)
		objects       objects
		clients       []string
		allow         string
		want          []safety.Finding
	}{
		{
			name:    "no change",
			live:    unchanged,
			desired: unchanged,
		},
		{
			name:    "scope",
			live:    unchanged,
			desired: clusterScoped,
			want:    []safety.Finding{{Rule: safety.RuleScopeChanged, Level: safety.Error}},
		},
		{
			name:    "group",
			live:    unchanged,
			desired: func(d *crd) { d.Spec.Group = "example.org" },
			want:    []safety.Finding{{Rule: safety.RuleGroupChanged, Level: safety.Error}},
		},
		{
			name:    "kind",
			live:    unchanged,
			desired: func(d *crd) { d.Spec.Names.Kind = "Example" },
			want:    []safety.Finding{{Rule: safety.RuleKindChanged, Level: safety.Error}},
		},
		{
			name:    "stored version removed, without objects",
			live:    storeBothVersions,
			desired: removeVersion,
			want: []safety.Finding{
				{Version: "v1alpha1", Rule: safety.RuleStoredVersionRemoved, Level: safety.Error},
			},
		},
		{
			name:    "unused served version removed",
			live:    unchanged,
			desired: removeVersion,
			objects: objects{written("v1")},
			want:    removed(safety.Warning, 0),
		},
		{
			name:    "served version removed in which objects were written",
			live:    unchanged,
			desired: removeVersion,
			objects: objects{written("v1alpha1")},
			want:    removed(safety.Error, 1),
		},
		{
			name:    "version with a client no longer served",
			live:    unchanged,
			desired: stopServing,
			clients: []string{"infrastructure-x"},
			want:    removed(safety.Error, 0),
		},
		{
			name:    "version removed that was not served, but in which objects were written",
			live:    stopServing,
			desired: removeVersion,
			objects: objects{written("v1alpha1")},
			want:    removed(safety.Error, 1),
		},
		{
			name:    "version removed that was neither served nor used",
			live:    stopServing,
			desired: removeVersion,
			want:    removed(safety.Warning, 0),
		},
		{
			name:    "storage version changed, with a webhook",
			live:    withFields,
			desired: both(withFields, moved, webhook("x")),
			objects: objects{sample("x", "a", "text")},
			want:    []safety.Finding{storageVersionChanged},
		},
		{
			name:    "storage version changed, without a webhook",
			live:    withFields,
			desired: both(withFields, moved),
			objects: objects{sample("x", "a", "text"), sample("y", "b", "text"), empty("z")},
			want: []safety.Finding{
				{
					Version:  "v1alpha1",
					Path:     "spec.a",
					Rule:     safety.RuleFieldNotInStorageVersion,
					Level:    safety.Error,
					Affected: 1,
				},
				{
					Version:  "v1alpha1",
					Path:     "spec.b",
					Rule:     safety.RuleTypeChanged,
					Level:    safety.Error,
					Affected: 1,
				},
				storageVersionChanged,
			},
		},
		{
			name:    "storage version changed, without a webhook or affected objects",
			live:    withFields,
			desired: both(withFields, moved),
			objects: objects{empty("z")},
			want: []safety.Finding{
				{Version: "v1alpha1", Path: "spec.a", Rule: safety.RuleFieldNotInStorageVersion, Level: safety.Warning},
				{Version: "v1alpha1", Path: "spec.b", Rule: safety.RuleTypeChanged, Level: safety.Warning},
				storageVersionChanged,
			},
		},
		{
			name:    "version deprecated",
			live:    unchanged,
			desired: deprecate,
			want:    []safety.Finding{{Version: "v1alpha1", Rule: safety.RuleVersionDeprecated, Level: safety.Info}},
		},
		{
			name:    "conversion webhook removed",
			live:    webhook("x"),
			desired: unchanged,
			want:    []safety.Finding{{Rule: safety.RuleConversionWebhookRemoved, Level: safety.Warning}},
		},
		{
			name:    "status subresource removed",
			live:    unchanged,
			desired: withoutStatus,
			objects: objects{empty("x")},
			want:    []safety.Finding{{Version: "v1", Rule: safety.RuleStatusSubresourceRemoved, Level: safety.Warning}},
		},
		{
			name:    "scale subresource removed",
			live:    withScale,
			desired: unchanged,
			want:    []safety.Finding{{Version: "v1", Rule: safety.RuleScaleSubresourceChanged, Level: safety.Warning}},
		},
		{
			name:    "selectable field removed",
			live:    withSelectableField,
			desired: unchanged,
			want:    []safety.Finding{{Version: "v1", Rule: safety.RuleSelectableFieldRemoved, Level: safety.Warning}},
		},
		{
			name:    "error that a user allows",
			live:    unchanged,
			desired: removeVersion,
			objects: objects{written("v1alpha1")},
			allow:   "others.example.com, samples.example.com",
			want:    removed(safety.Warning, 1),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			live, desired := v1alpha1(), v1alpha1()
			c.live(live)
			c.desired(desired)
			report, err := safety.Check(t.Context(), safety.Input{
				Changes: []safety.Change{{Live: live, Desired: desired}}, Objects: c.objects,
				Clients: map[schema.GroupVersionResource][]string{samples.GroupResource().WithVersion("v1alpha1"): c.clients},
				Allow:   safety.AllowedCRDs(map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: c.allow}),
			})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found(report)).To(Equal(c.want), "%s", report)

			if c.allow != "" {
				g.Expect(report.String()).To(ContainSubstring("explicitly allowed"))
			}
		})
	}
}

func TestCheckSeveralDefinitions(t *testing.T) {
	g := NewWithT(t)
	created, same, unsafe := v1alpha1(), v1alpha1(), v1alpha1()
	created.Name, unsafe.Name = "new.example.com", "a.example.com"
	scope := unsafe.DeepCopy()
	scope.Spec.Scope = apiextensionsv1.ClusterScoped
	report, err := safety.Check(t.Context(), safety.Input{Objects: objects{}, Changes: []safety.Change{
		{Desired: created}, {Live: same, Desired: same}, {Live: unsafe, Desired: scope},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report.Findings).To(HaveLen(1))
	g.Expect(report.Findings[0].CRD).To(Equal("a.example.com"))
}

// unreadable fails to read any object.
type unreadable struct{}

func (unreadable) All(context.Context, schema.GroupVersionResource) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) { yield(nil, errors.New("no connection")) }
}

func TestCheckUnreadableObjects(t *testing.T) {
	g := NewWithT(t)
	_, err := safety.Check(
		t.Context(),
		safety.Input{
			Objects: unreadable{},
			Changes: []safety.Change{{Live: definition(changes, false), Desired: definition(changes, true)}},
		},
	)
	g.Expect(err).
		To(MatchError(And(ContainSubstring("read the samples.example.com in version v1"), ContainSubstring("no connection"))))
}

func TestCheckInvalidObjects(t *testing.T) {
	g := NewWithT(t)
	c := changes[slices.IndexFunc(changes, func(c change) bool { return c.name == "enum" })]
	report, err := safety.Check(t.Context(), safety.Input{
		Objects: objects{sample("old", "enum", "neither")},
		Changes: []safety.Change{{Live: definition([]change{c}, false), Desired: definition([]change{c}, true)}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found(report)).To(Equal([]safety.Finding{
		{Version: "v1", Path: "spec.enum", Rule: safety.RuleEnumRestricted, Level: safety.Warning},
	}), "%s", report)
}

func TestReportMessage(t *testing.T) {
	g := NewWithT(t)

	const secret = "hunter2"

	var all objects
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(
			all,
			sample(name, "enumAdded", secret),
			sample(name, "pattern", secret),
			sample(name, "removed", "{a: "+secret+"}"),
			sample(name, "type", secret),
			sample(name, "validation", "{a: 2}"),
			sample(name, "maxLengthInMap", "{key: "+secret+"}"),
		)
	}

	report, err := safety.Check(
		t.Context(),
		safety.Input{
			Objects: all,
			Changes: []safety.Change{{Live: definition(changes, false), Desired: definition(changes, true)}},
		},
	)
	g.Expect(err).NotTo(HaveOccurred())

	message := report.Message()
	g.Expect(message).
		To(HavePrefix("samples.example.com v1 spec.enumAdded: " +
			"enum: enum constraint added when there was none previously: [\"b\"]; breaks 4 objects, including " +
			"default/a and default/b; change the affected objects"))
	g.Expect(message).To(HaveSuffix(". and 3 more"))
	g.Expect(len(message)).To(BeNumerically("<", 1500))
	g.Expect(report.WithLevel(safety.Error)).To(HaveLen(6))

	for _, text := range []string{message, report.String()} {
		g.Expect(text).NotTo(ContainSubstring(secret))
	}

	none, err := safety.Check(t.Context(), safety.Input{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none.Message()).To(Equal("the change of the CustomResourceDefinitions breaks no objects or clients"))
}
