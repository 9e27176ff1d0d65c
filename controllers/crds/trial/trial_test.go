package trial_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/trial"
)

// run tries one change on objects.
func run(t *testing.T, change trial.Change, on trial.Objects, allow ...string) *trial.Report {
	t.Helper()

	findings, err := trial.Run(t.Context(), change, on)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return trial.NewReport(findings, allow)
}

func TestDefinitions(t *testing.T) {
	finding := func(version, path string, affected int) trial.Finding {
		return trial.Finding{Problem: trial.Problem{Version: version, Path: path}, Affected: affected}
	}
	removed := func(affected int) []trial.Finding {
		return []trial.Finding{finding("v1alpha1", "", affected)}
	}

	for _, c := range []struct {
		name          string
		live, desired func(*crd)
		objects       objects
		users         map[string][]string
		want          []trial.Finding
	}{
		{name: "no change", live: unchanged, desired: unchanged, objects: objects{written("v1alpha1")}},
		{name: "served version removed in which no object was written",
			live: unchanged, desired: removeVersion, objects: objects{written("v1")}},
		{name: "served version removed in which objects were written",
			live: unchanged, desired: removeVersion, objects: objects{written("v1alpha1")}, want: removed(1)},
		{name: "served version removed that another provider needs",
			live: unchanged, desired: removeVersion, users: map[string][]string{"v1alpha1": {"infrastructure-x"}},
			want: removed(0)},
		{name: "version no longer served that another provider needs",
			live: unchanged, desired: stopServing, users: map[string][]string{"v1alpha1": {"infrastructure-x"}},
			want: removed(0)},
		{name: "version that stays and that another provider needs",
			live: unchanged, desired: removeVersion, users: map[string][]string{"v1": {"infrastructure-x"}}},
		{name: "served version removed in which objects were written, while another changes",
			live:    func(d *crd) { *d = *withVersions("v1alpha1", "v1beta1") },
			desired: both(func(d *crd) { *d = *withVersions("v1beta1") }, withoutStatusField(1)),
			objects: objects{written("v1alpha1")}, want: removed(1)},
		{name: "version removed that was not served, but in which objects were written",
			live: stopServing, desired: removeVersion, objects: objects{written("v1alpha1")}, want: removed(1)},
		{name: "storage version changed, with a webhook",
			live: withFields, desired: both(withFields, moved, webhook("x")),
			objects: objects{sample("x", "a", "text")}},
		{name: "storage version changed, without a webhook",
			live: withFields, desired: both(withFields, moved),
			objects: objects{sample("x", "a", "text"), sample("y", "b", "text"), empty("z")},
			want:    []trial.Finding{finding("v1", "spec.a", 1), finding("v1", "spec.b", 1)}},
		{name: "storage version changed, without a webhook or affected objects",
			live: withFields, desired: both(withFields, moved), objects: objects{empty("z")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			live, desired := v1alpha1(), v1alpha1()
			c.live(live)
			c.desired(desired)

			change := trial.Change{Live: live, Desired: desired, Users: c.users}
			report := run(t, change, c.objects)
			g.Expect(found(report)).To(Equal(c.want), report.Message())
			g.Expect(report.Refused()).To(Equal(len(c.want) > 0))

			allowed := run(t, change, c.objects, trial.AllowedCRDs(map[string]string{
				v1alpha2.AllowUnsafeCRDAnnotation: "others.example.com@v1.2.0, samples.example.com@v1.2.0",
			}, "v1.2.0")...)
			g.Expect(found(allowed)).To(Equal(c.want))
			g.Expect(allowed.Refused()).To(BeFalse())
			g.Expect(allowed.Allowed()).To(HaveLen(len(c.want)))

			for _, text := range allowed.Allowed() {
				g.Expect(text).To(ContainSubstring("allowed by the annotation"))
			}
		})
	}
}

// found returns the findings with only what the tests are about.
func found(report *trial.Report) []trial.Finding {
	var findings []trial.Finding
	for _, f := range report.Findings {
		findings = append(findings, trial.Finding{
			Problem: trial.Problem{Version: f.Version, Path: f.Path}, Affected: f.Affected,
		})
	}

	return findings
}

// inVersion are objects that can only be read in one version.
type inVersion struct {
	objects
	version string
}

func (o inVersion) All(
	ctx context.Context, resource schema.GroupVersionResource,
) iter.Seq2[*unstructured.Unstructured, error] {
	if resource.Version != o.version {
		panic("version " + resource.Version + " is not to be read")
	}

	return o.objects.All(ctx, resource)
}

// TestVersionThatIsRead: objects are read in the version that needs no conversion, and only if it changes.
func TestVersionThatIsRead(t *testing.T) {
	changed := func(versions ...int) trial.Change {
		change := trial.Change{Live: v1alpha1(), Desired: v1alpha1()}
		for _, i := range versions {
			delete(change.Desired.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties, "status")
		}

		return change
	}
	unserved := changed(1)
	unserved.Live.Spec.Versions[0].Served = false

	for name, c := range map[string]struct {
		change  trial.Change
		version string
	}{
		"nothing changes":                   {changed(), ""},
		"only another version changes":      {changed(1), ""},
		"both versions change":              {changed(0, 1), "v1"},
		"the storage version is not served": {unserved, "v1alpha1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(run(t, c.change, inVersion{objects{empty("a")}, c.version}).Findings).To(BeEmpty())
		})
	}
}

// unreadable are objects that cannot be read.
type unreadable struct{}

func (unreadable) All(context.Context, schema.GroupVersionResource) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) { yield(nil, errors.New("no connection")) }
}

func (u unreadable) Stored(
	ctx context.Context, resource schema.GroupVersionResource,
) iter.Seq2[*unstructured.Unstructured, error] {
	return u.All(ctx, resource)
}

func TestUnreadableObjects(t *testing.T) {
	change := trial.Change{Live: v1alpha1(), Desired: v1alpha1()}
	delete(change.Desired.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties, "status")

	_, err := trial.Run(t.Context(), change, unreadable{})
	NewWithT(t).Expect(err).To(MatchError(And(
		ContainSubstring("on the samples.example.com in version v1"), ContainSubstring("no connection"))))
}

// TestInvalidObjects: what the old schema refuses, too, is not the fault of the change.
func TestInvalidObjects(t *testing.T) {
	c := changes[slices.IndexFunc(changes, func(c change) bool { return c.name == "enum" })]
	change := trial.Change{Live: definition([]change{c}, false), Desired: definition([]change{c}, true)}

	NewWithT(t).Expect(run(t, change, objects{sample("old", "enum", "neither")}).Findings).To(BeEmpty())
}

// TestBrokenStatus: many objects whose status breaks do not hide one that breaks otherwise.
func TestBrokenStatus(t *testing.T) {
	change := trial.Change{Live: withStatus(""), Desired: withStatus("^New$")}
	change.Live.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {Type: "string"}},
	}

	var all objects

	for range 150 {
		o := empty("old")
		o.Object["status"] = map[string]any{"phase": "Old"}
		all = append(all, o)
	}

	g := NewWithT(t)
	g.Expect(run(t, change, all).Findings).To(BeEmpty())

	report := run(t, change, append(all, sample("broken", "a", "text")))
	g.Expect(report.Refused()).To(BeTrue())
	g.Expect(found(report)).To(Equal([]trial.Finding{
		{Problem: trial.Problem{Version: "v1", Path: "spec.a"}, Affected: 1},
	}))
}

// TestBounds: many broken objects end a trial, and objects with many broken fields do not make it endless.
func TestBounds(t *testing.T) {
	g := NewWithT(t)
	c := change{
		name: "many",
		old:  "{type: object, x-kubernetes-preserve-unknown-fields: true}",
		new:  "{type: object}",
	}
	change := trial.Change{Live: definition([]change{c}, false), Desired: definition([]change{c}, true)}

	var many objects

	for i := range 150 {
		o := empty("a")
		fields := map[string]any{}

		for j := range 20 {
			fields[string(rune('a'+i%26))+string(rune('a'+j))] = "x"
		}

		o.Object["spec"] = map[string]any{"many": fields}
		many = append(many, o)
	}

	report := run(t, change, many)
	g.Expect(report.Findings).To(HaveLen(1))
	g.Expect(report.Findings[0].Affected).To(Equal(100))
	g.Expect(report.Message()).To(ContainSubstring("at least 100 objects, including default/a"))
}
