package safety_test

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
	"k8s.io/client-go/util/cert"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/safety"
)

func TestCheckDefinition(t *testing.T) {
	// removed returns the finding about the second version.
	removed := func(level safety.Level, affected int) []safety.Finding {
		return []safety.Finding{
			{Version: "v1alpha1", Rule: safety.RuleServedVersionRemoved, Level: level, Affected: affected},
		}
	}
	certificate, _, err := cert.GenerateSelfSignedCertKey("example", nil, nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

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
			name:    "placeholder instead of a CA",
			live:    both(webhook("x"), withCA(certificate)),
			desired: both(webhook("x"), withCA([]byte("\n"))),
			want:    []safety.Finding{{Rule: safety.RulePlaceholderCA, Level: safety.Info}},
		},
		{
			name:    "CA that is published",
			live:    webhook("x"),
			desired: both(webhook("x"), withCA(certificate)),
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
			allow:   "others.example.com@v1.2.0, samples.example.com@v1.2.0",
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
				Allow:   safety.AllowedCRDs(map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: c.allow}, "v1.2.0"),
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
