package e2e

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
)

var _ = Describe("Patches of a provider's CustomResourceDefinitions", Ordered, func() {
	var w *world

	t := newTiny("patched", "v1.0.0")
	p := t.resource()

	onCRD := &v1alpha2.PatchTarget{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: t.crd(),
	}
	label := v1alpha2.Patch{Patch: "metadata: {labels: {team: a}}", Target: onCRD}
	addFields := func(schema string) v1alpha2.Patch {
		return v1alpha2.Patch{Target: onCRD, Patch: "- op: add\n" +
			"  path: /spec/versions/0/schema/openAPIV3Schema/properties\n  value: {spec: " + schema + "}"}
	}

	// change changes the patches of the resource.
	change := func(ctx context.Context, patches ...v1alpha2.Patch) {
		GinkgoHelper()
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Patches = patches })
	}
	// fields returns the fields of spec that the schema of the CRD has.
	fields := func(ctx context.Context) map[string]string {
		GinkgoHelper()

		found := map[string]string{}
		for name, field := range w.definition(ctx, t.crd()).Spec.Versions[0].Schema.OpenAPIV3Schema.
			Properties["spec"].Properties {
			found[name] = field.Type
		}

		return found
	}
	crdLabels := func(ctx context.Context) func() map[string]string {
		return func() map[string]string { return w.definition(ctx, t.crd()).Labels }
	}

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		w.offer(ctx, t)

		p.Spec.Patches = []v1alpha2.Patch{label, addFields("{type: object, properties: {zone: {type: string}}}")}
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("are applied, recorded with the revision, and kept", func(ctx SpecContext) {
		Expect(fields(ctx)).To(Equal(map[string]string{"zone": "string"}))
		Expect(crdLabels(ctx)()).To(And(HaveKeyWithValue("team", "a"),
			HaveKeyWithValue(v1alpha2.ClusterctlProviderLabel, "infrastructure-patched")))
		Expect(w.run(ctx, "helm", "get", "metadata", v1alpha2.ReleaseName(p), "-n", p.Namespace)).To(
			ContainSubstring("capstan.dev/patched-crds=" + t.crd()))

		w.editDefinition(ctx, t.crd(), func(crd *apiextensionsv1.CustomResourceDefinition) { delete(crd.Labels, "team") })
		Eventually(crdLabels(ctx)).Should(HaveKeyWithValue("team", "a"))
		Eventually(w.events(ctx, p)).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.DriftCorrectedReason),
			HaveField("Note", ContainSubstring(t.crd()+": /metadata/labels/team")),
		)))
	})

	It("are refused if they make another CRD of it, and what is applied stays", func(ctx SpecContext) {
		before := w.definition(ctx, t.crd())

		change(ctx, v1alpha2.Patch{Patch: "spec: {scope: Cluster}", Target: onCRD})
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.ComponentsPatchErrorReason,
			"spec.patches[0]: cannot be applied to CustomResourceDefinition "+t.crd()+": spec.scope must not be changed"))

		change(ctx, v1alpha2.Patch{Patch: "a: b", Target: &v1alpha2.PatchTarget{Kind: onCRD.Kind, Name: "other"}})
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.ComponentsPatchErrorReason,
			"it matches no object; its target is kind CustomResourceDefinition, name other",
			"objects of that kind: CustomResourceDefinition "+t.crd()))

		Expect(w.definition(ctx, t.crd()).ResourceVersion).To(Equal(before.ResourceVersion))
	})

	It("are refused if they break objects", func(ctx SpecContext) {
		victim := t.object("v1", "victim")
		victim.Object["spec"] = map[string]any{"zone": "a"}
		Expect(w.client.Create(ctx, victim)).To(Succeed())

		change(ctx, label, addFields("{type: object, required: [size], properties: {size: {type: string}}}"))
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.CRDsSafeCondition, metav1.ConditionFalse,
			v1alpha2.UnsafeCRDsReason, t.crd(), "default/victim", "spec.size"))
		Expect(fields(ctx)).To(HaveKey("zone"))
	})

	It("are what diff compares", func(ctx SpecContext) {
		w.createOperatorDeployment(ctx)
		capstan := newCommandLine(w)

		change(ctx, label, addFields("{type: object, properties: {zone: {type: string}}}"))
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		other := t.resource()
		other.Spec.Patches = []v1alpha2.Patch{label}
		other.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("InfrastructureProvider"))
		text, err := yaml.Marshal(other)
		Expect(err).NotTo(HaveOccurred())

		file := filepath.Join(GinkgoT().TempDir(), "provider.yaml")
		Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
		Expect(capstan.succeed(ctx, "diff", "-f", file)).To(
			ContainSubstring("CustomResourceDefinition " + t.crd() + " would be changed"))
	})

	It("are removed with the patches", func(ctx SpecContext) {
		before := len(w.operatorWrites(func(r bed.Request) bool { return r.Name == t.crd() && !r.DryRun }))

		change(ctx)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(fields(ctx)).To(BeEmpty())
		Expect(crdLabels(ctx)()).NotTo(HaveKey("team"))
		Expect(w.operatorWrites(func(r bed.Request) bool { return r.Name == t.crd() && !r.DryRun })).To(
			HaveLen(before+1), "once")
	})
})
