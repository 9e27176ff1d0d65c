package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// versions is the part of newTiny's CRD that scenarios replace.
const versions = `  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// serving returns the tiny provider with other versions of its CRD. The first is the storage
// version.
func (t tiny) serving(names ...string) tiny {
	var text strings.Builder
	for i, name := range names {
		text.WriteString(
			strings.NewReplacer("name: v1", "name: "+name, "storage: true", fmt.Sprintf("storage: %v", i == 0)).
				Replace(versions),
		)
	}

	t.components = strings.Replace(t.components, versions, text.String(), 1)

	return t
}

// withoutCRD returns the tiny provider without its CRD.
func (t tiny) withoutCRD() tiny {
	begin := strings.Index(t.components, "apiVersion: apiextensions")
	end := begin + strings.Index(t.components[begin:], "---\n") + len("---\n")
	t.components = t.components[:begin] + t.components[end:]

	return t
}

// offer makes a version of the tiny provider available to its resource.
func (w *world) offer(ctx context.Context, t tiny) {
	GinkgoHelper()
	Expect(client.IgnoreAlreadyExists(w.client.Create(ctx, t.namespace()))).To(Succeed())
	Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
}

// definition reads a CRD.
func (w *world) definition(ctx context.Context, name string) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()

	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(w.client.Get(ctx, client.ObjectKey{Name: name}, crd)).To(Succeed())

	return crd
}

// editDefinition changes a CRD, whose status the API server may write at the same time.
func (w *world) editDefinition(
	ctx context.Context, name string, change func(*apiextensionsv1.CustomResourceDefinition),
	options ...client.UpdateOption,
) {
	GinkgoHelper()

	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: named("", name)}
	Expect(bedtest.Edit(ctx, w.client, crd, change, options...)).To(Succeed())
}

// managerTried does what the migrator in a provider's manager does when it has looked at all objects of a CRD. The
// operator then rewrites what is left at once, and waits no longer for the manager.
func (w *world) managerTried(ctx context.Context, name string) {
	GinkgoHelper()

	w.editDefinition(ctx, name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, clusterv1.CRDMigrationObservedGenerationAnnotation,
			strconv.FormatInt(crd.Generation, 10))
	})
}

// names returns the names of a CRD's versions.
func names(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var all []string
	for _, v := range crd.Spec.Versions {
		all = append(all, v.Name)
	}

	return all
}

var _ = Describe("A provider's CustomResourceDefinitions", Ordered, everyKubernetes, ContinueOnFailure, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	install := func(ctx context.Context, t tiny) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()
		w.offer(ctx, t)
		p := t.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())

		return p
	}
	upgrade := func(ctx context.Context, p v1alpha2.Provider, t tiny) {
		GinkgoHelper()
		w.offer(ctx, t)
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = t.version })
	}

	It("lose a version only after all objects stored in it are rewritten", func(ctx SpecContext) {
		first := newTiny("moving", "v1.0.0").serving("v1alpha1")
		p := install(ctx, first)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		for i := range 10 {
			Eventually(func() error {
				return client.IgnoreAlreadyExists(w.client.Create(ctx, first.object("v1alpha1", fmt.Sprintf("object-%d", i))))
			}).Should(Succeed())
		}

		upgrade(ctx, p, newTiny("moving", "v1.1.0").serving("v1beta1"))
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(p).To(haveCondition(
			v1alpha2.CRDsMigratedCondition, metav1.ConditionFalse, v1alpha2.WaitingForManagerReason, first.crd()))
		w.managerTried(ctx, first.crd())
		Eventually(func(g Gomega) {
			crd := w.definition(ctx, first.crd())
			g.Expect(names(crd)).To(Equal([]string{"v1beta1"}))
			g.Expect(crd.Status.StoredVersions).To(Equal([]string{"v1beta1"}))
		}).Should(Succeed())
		Eventually(w.read(ctx, p)).Should(
			haveCondition(v1alpha2.CRDsMigratedCondition, metav1.ConditionTrue, v1alpha2.CRDsMigratedReason))

		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(first.inVersion("v1beta1").GroupVersionKind())
		Eventually(func() error { return w.client.List(ctx, list) }).Should(Succeed())
		Expect(list.Items).To(HaveLen(10))
		Expect(list.Items).To(HaveEach(WithTransform(func(o unstructured.Unstructured) bool {
			return o.Object["spec"].(map[string]any)["name"] == o.GetName()
		}, BeTrue())))
	})

	It("are not changed if an object would break, until it is allowed", func(ctx SpecContext) {
		first := newTiny("unsafe", "v1.0.0")
		p := install(ctx, first)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Eventually(func() error { return w.client.Create(ctx, first.object("v1", "victim")) }).Should(Succeed())

		breaking := newTiny("unsafe", "v1.1.0")
		breaking.components = strings.Replace(
			breaking.components,
			"type: object, x-kubernetes-preserve-unknown-fields: true",
			"type: object, properties: {spec: {type: object, required: [size], "+
				"properties: {name: {type: string}, size: {type: string}}}}",
			1,
		)
		upgrade(ctx, p, breaking)
		Eventually(w.read(ctx, p)).Should(And(
			haveCondition(
				v1alpha2.CRDsSafeCondition,
				metav1.ConditionFalse,
				v1alpha2.UnsafeCRDsReason,
				first.crd(),
				"default/victim",
				"spec.size",
			),
			beStalled(v1alpha2.UnsafeCRDsReason),
		))
		Expect(w.helm(ctx, "helm", "list", "-n", "unsafe")).To(
			ContainElement(HaveField("AppVersion", "v1.0.0")), "the release is not upgraded without the CRDs")

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: first.crd() + "@v1.1.0"})
		})
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.1.0"),
			haveCondition(v1alpha2.CRDsSafeCondition, metav1.ConditionTrue, v1alpha2.CRDsCheckedReason)))
		Eventually(w.events(ctx, p)).Should(
			ContainElement(And(
				HaveField("Reason", v1alpha2.UnsafeCRDsAllowedReason),
				HaveField("Note", ContainSubstring("spec.size")),
			)),
		)
	})

	It("are changed while their conversion webhook does not answer, if need be once allowed", func(ctx SpecContext) {
		first := newTiny("unconverted", "v1.0.0")
		p := install(ctx, first)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Eventually(func() error { return w.client.Create(ctx, first.object("v1", "old")) }).Should(Succeed())

		// unconverted returns a version of the provider with a newer storage version, and another schema in each.
		unconverted := func(version string) tiny {
			t := newTiny(first.name, version)
			t.components = strings.NewReplacer("storage: true", "storage: false", "scope: Namespaced\n", `scope: Namespaced
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1/convert"}}
`, "  versions:\n", `  versions:
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: `+version+`,
    x-kubernetes-preserve-unknown-fields: true}}}
`).Replace(t.components)

			return t
		}

		upgrade(ctx, p, unconverted("v1.1.0"))
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

		By("reading objects in the version that all of them are stored in")
		upgrade(ctx, p, unconverted("v1.2.0"))
		Eventually(w.read(ctx, p)).Should(beReady("v1.2.0"))

		By("not being able to read those that are stored in different versions")
		Eventually(func() error { return w.client.Create(ctx, first.object("v2", "new")) }).Should(Succeed())
		upgrade(ctx, p, unconverted("v1.2.1"))
		Eventually(w.read(ctx, p)).Should(And(
			notBeReady(v1alpha2.UnreadableObjectsReason, "v1.2.0 runs; v1.2.1 is not applied yet", first.crd()+" v2",
				"conversion webhook for infrastructure.cluster.x-k8s.io/v1, Kind="+first.kind()+" failed",
				"kubectl patch customresourcedefinition "+first.crd(),
				v1alpha2.AllowUnsafeCRDAnnotation+": "+first.crd()+"@v1.2.1"),
			haveCondition(v1alpha2.CRDsSafeCondition, metav1.ConditionFalse, v1alpha2.UnreadableObjectsReason),
		))
		Eventually(w.events(ctx, p)).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.UnreadableObjectsReason), HaveField("Type", corev1.EventTypeWarning))))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: first.crd() + "@v1.2.1"})
		})
		Eventually(w.read(ctx, p)).Should(beReady("v1.2.1"))

		By("repairing it, without which no namespace could be deleted")

		repaired := unconverted("v1.2.2")
		repaired.components = regexp.MustCompile(`strategy: Webhook\n.*\n`).
			ReplaceAllString(repaired.components, "strategy: None\n")

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: first.crd() + "@v1.2.2"})
		})
		upgrade(ctx, p, repaired)
		Eventually(w.read(ctx, p)).Should(beReady("v1.2.2"))

		for _, name := range []string{"old", "new"} {
			Eventually(func() error { return w.client.Delete(ctx, first.object("v2", name)) }).Should(Succeed())
		}
	})

	It("are not changed by an upgrade that could not be applied", func(ctx SpecContext) {
		good, bad := newTiny("whole", "v1.0.0"), newTiny("whole", "v1.1.0").serving("v1", "v2")
		bad.components = strings.Replace(bad.components, "replicas: 1", "replicas: -1", 1) +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: taken, namespace: whole-system}\n"
		p := install(ctx, good)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		taken := &corev1.ConfigMap{ObjectMeta: named("whole", "taken")}
		taken.Annotations = map[string]string{
			v1alpha2.HelmReleaseNameAnnotation: "other", v1alpha2.HelmReleaseNamespaceAnnotation: "elsewhere",
		}
		Expect(w.client.Create(ctx, taken)).To(Succeed())

		before := time.Now()
		ofUpgrade := func(r bed.Request) bool {
			return r.Received.After(before) && (r.Name == good.crd() || r.Name == "whole-controller-manager")
		}
		// change changes the resource. A new request makes the operator look at the cluster at once.
		change := func(patches ...string) {
			GinkgoHelper()
			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.GetSpec().Version, p.GetSpec().ManifestPatches = bad.version, patches
				p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: time.Now().String()})
			})
		}

		By("finding that a patch matches nothing")
		w.offer(ctx, bad)
		change("kind: Deployment\nmetadata: {name: other, labels: {a: b}}")
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.ComponentsPatchErrorReason, "it matches no object"))

		By("finding an object of another release")
		change()
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason,
			"ConfigMap whole/taken belongs to release elsewhere/other"))

		By("finding that the API server would refuse an object")
		Expect(w.client.Delete(ctx, taken)).To(Succeed())
		change()
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason,
			"the API server would refuse Deployment whole/whole-controller-manager, so nothing was changed",
			"v1.0.0 runs; v1.1.0 is not applied: "))

		Expect(w.operatorWrites(ofUpgrade)).To(BeEmpty())
		Expect(names(w.definition(ctx, good.crd()))).To(HaveExactElements("v1"))

		By("upgrading once all is accepted")
		change("kind: Deployment\nspec: {replicas: 1}")
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(names(w.definition(ctx, good.crd()))).To(HaveExactElements("v1", "v2"))
		Expect(p.Status.Release.Revision).To(Equal(2))
	})

	It("that another program changes are restored, or reported", func(ctx SpecContext) {
		t := newTiny("edited", "v1.0.0")
		p := install(ctx, t)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		replaceSchema := func() {
			GinkgoHelper()

			w.editDefinition(ctx, t.crd(), func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object"}
			}, client.FieldOwner("kubectl-edit"))
		}
		preserves := func(g Gomega) bool {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(w.client.Get(ctx, client.ObjectKey{Name: t.crd()}, crd)).To(Succeed())

			return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.XPreserveUnknownFields != nil
		}

		replaceSchema()
		Eventually(preserves).Should(BeTrue())
		Eventually(w.events(ctx, p)).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.DriftCorrectedReason),
			HaveField("Note", ContainSubstring(t.crd()+": /spec/versions")),
		)))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{Drift: v1alpha2.DriftWarn}
		})
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		replaceSchema()
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.DriftedCondition, metav1.ConditionTrue,
			v1alpha2.DriftDetectedReason, t.crd()+": /spec/versions"))
		Expect(preserves(Default)).To(BeFalse())

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Release = nil })
		Eventually(preserves).Should(BeTrue())
		Eventually(w.read(ctx, p)).ShouldNot(haveCondition(v1alpha2.DriftedCondition, metav1.ConditionTrue,
			v1alpha2.DriftDetectedReason))
	})

	It("of one provider are not taken over by another that defines the same", func(ctx SpecContext) {
		owner := newTiny("owner", "v1.0.0")
		p := install(ctx, owner)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		rival := newTiny("rival", "v1.0.0")
		rival.components = strings.ReplaceAll(
			strings.ReplaceAll(rival.components, "tinyrival", "tinyowner"),
			"Tinyrival",
			"Tinyowner",
		)
		r := install(ctx, rival)
		Eventually(w.read(ctx, r)).Should(And(
			notBeInstalled(v1alpha2.CRDConflictReason,
				"infrastructure-owner",
				"infrastructure-rival",
			),
			beStalled(v1alpha2.CRDConflictReason),
		))
		Expect(w.helm(ctx, "helm", "list", "-n", "rival", "--all")).To(BeEmpty())
		Expect(w.definition(ctx, owner.crd()).Labels).To(
			HaveKeyWithValue(v1alpha2.ClusterctlProviderLabel, "infrastructure-owner"))

		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		Eventually(w.read(ctx, r)).Should(beReady("v1.0.0"), "CRDs without an owner are adopted")
	})

	It("of a Helm release are adopted once that is uninstalled", func(ctx SpecContext) {
		t := newTiny("outlived", "v1.0.0")

		w.run(ctx, "helm", "install", "platform", platformChart(), "-n", "platform-outlived", "--create-namespace")

		crd := t.definition(nil)
		crd.Annotations = map[string]string{
			v1alpha2.HelmReleaseNameAnnotation: "platform", v1alpha2.HelmReleaseNamespaceAnnotation: "platform-outlived",
		}
		Expect(w.client.Create(ctx, crd, client.FieldOwner("helm"))).To(Succeed())

		p := install(ctx, t)
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.CRDConflictReason,
			"belongs to the Helm release platform-outlived/platform, but infrastructure-outlived includes it as well"))

		w.run(ctx, "helm", "uninstall", "platform", "-n", "platform-outlived")
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "uninstalled"})
		})
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(w.definition(ctx, t.crd()).Labels).To(
			HaveKeyWithValue(v1alpha2.ClusterctlProviderLabel, "infrastructure-outlived"))
	})

	It("that are unmanaged are waited for, and never changed", func(ctx SpecContext) {
		t := newTiny("unmanaged", "v1.0.0")
		w.offer(ctx, t)
		p := t.resource()
		p.Spec.CRDs = &v1alpha2.CRDsSpec{Unmanaged: []string{t.crd()}}
		p.Spec.Release = &v1alpha2.ReleaseSpec{Timeout: &metav1.Duration{Duration: 3 * time.Second}}
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(
			notBeReady(v1alpha2.WaitingForCRDsReason, t.crd()),
			haveCondition(v1alpha2.ReconcilingCondition, metav1.ConditionTrue, v1alpha2.WaitingForCRDsReason),
		))
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.WaitingForCRDsReason,
			"not installed yet; this takes longer than spec.release.timeout (3s): "), "nothing else wakes the provider")
		Expect(w.helm(ctx, "helm", "list", "-n", "unmanaged", "--all")).To(BeEmpty())

		crd := t.definition(nil)
		crd.Spec.Versions[0].Name = "v0"
		Expect(w.client.Create(ctx, crd)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.IncompatibleCRDReason, "does not serve the version"))

		w.editDefinition(ctx, t.crd(), func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions = append(crd.Spec.Versions, t.definition(nil).Spec.Versions...)
			crd.Spec.Versions[0].Storage = false
		})
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"), "the CRD is watched although it has no label")
		Expect(w.operatorWrites(func(r bed.Request) bool { return r.Name == t.crd() })).To(BeEmpty())
	})

	capstan := func(ctx context.Context, args ...string) string {
		GinkgoHelper()

		out, warnings, _ := newCommandLine(w).run(ctx, args...)

		return out + warnings
	}
	// dropping installs v1.0.0 of a provider, and returns it with v1.1.0, which does not include its CRD.
	dropping := func(ctx context.Context, name string) (first, second tiny, p *v1alpha2.InfrastructureProvider) {
		GinkgoHelper()

		first, second = newTiny(name, "v1.0.0"), newTiny(name, "v1.1.0").withoutCRD()
		p = install(ctx, first)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		return first, second, p
	}
	// left matches the event about a CRD that stays.
	left := func(eventType string, parts ...string) types.GomegaMatcher {
		note := []types.GomegaMatcher{}
		for _, part := range parts {
			note = append(note, ContainSubstring(part))
		}

		return ContainElement(And(HaveField("Reason", v1alpha2.OrphanedCRDsReason), HaveField("Type", eventType),
			HaveField("Note", And(note...))))
	}

	It("are kept when a version drops them, and listed as orphaned", func(ctx SpecContext) {
		first, second, p := dropping(ctx, "orphaning")
		stays := "CustomResourceDefinition " + first.crd() + " would be kept, although v1.1.0 does not include it"

		w.offer(ctx, second)
		Expect(capstan(ctx, "diff", "infrastructure-orphaning", "--version", "v1.1.0")).To(ContainSubstring(stays))
		Eventually(func() string { return capstan(ctx, "upgrade", "plan") }).Should(ContainSubstring(stays))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(p.Status.OrphanedCRDs).To(Equal([]string{first.crd()}))
		Eventually(w.events(ctx, p)).Should(left(corev1.EventTypeNormal, "v1.1.0 does not include", first.crd()))

		By("not keeping a later version from being installed, whatever objects there are")
		Expect(w.client.Create(ctx, first.object("v1", "late"))).To(Succeed())
		upgrade(ctx, p, newTiny("orphaning", "v1.2.0").withoutCRD())
		Eventually(w.read(ctx, p)).Should(beReady("v1.2.0"))
	})

	It("are not dropped while there are objects, until it is allowed", func(ctx SpecContext) {
		first, second, p := dropping(ctx, "abandoning")

		for _, name := range []string{"a", "b", "c"} {
			Eventually(func() error { return w.client.Create(ctx, first.object("v1", name)) }).Should(Succeed())
		}

		upgrade(ctx, p, second)

		finding := first.crd() + " (3 objects, including default/a and default/b): not in v1.1.0, so nothing reconciles"
		Eventually(w.read(ctx, p)).Should(And(
			beStalled(v1alpha2.UnsafeCRDsReason, "v1.0.0 runs; v1.1.0 is not applied", finding,
				"delete them, or replace them", v1alpha2.AllowUnsafeCRDAnnotation+": "+first.crd()+"@v1.1.0"),
			haveCondition(v1alpha2.CRDsSafeCondition, metav1.ConditionFalse, v1alpha2.UnsafeCRDsReason, finding),
		))
		Expect(p.Status.OrphanedCRDs).To(BeEmpty())
		Expect(w.helm(ctx, "helm", "list", "-n", "abandoning")).To(ContainElement(HaveField("AppVersion", "v1.0.0")))

		for _, command := range [][]string{{"diff", "infrastructure-abandoning"}, {"upgrade", "plan"}} {
			Expect(capstan(ctx, command...)).To(ContainSubstring(finding), strings.Join(command, " "))
		}

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: first.crd() + "@v1.1.0"})
		})
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(p.Status.OrphanedCRDs).To(Equal([]string{first.crd()}))
		Eventually(w.events(ctx, p)).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.UnsafeCRDsAllowedReason), HaveField("Note", ContainSubstring("3 objects")))))
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, first.object("v1", "a"))).To(Succeed())
	})

	It("do not prevent the rollback of a failed version, but one that is asked for", func(ctx SpecContext) {
		second := newTiny("returning", "v1.1.0")
		p := install(ctx, newTiny("returning", "v1.0.0").withoutCRD())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		w.offer(ctx, neverRunning(second))
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Version = second.version
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{
				Timeout: &metav1.Duration{Duration: 5 * time.Second}, Retries: new(int32),
			}
		})
		Eventually(func() error { return w.client.Create(ctx, second.object("v1", "made")) }).Should(Succeed())

		object := second.crd() + " (default/made)"

		Eventually(w.read(ctx, p)).Should(beStalled(
			v1alpha2.TimedOutWaitingForDeploymentReason, "v1.0.0 runs; v1.1.0 failed, given up"))
		Eventually(w.events(ctx, p)).Should(left(corev1.EventTypeWarning, "v1.0.0 does not include", object))

		upgrade(ctx, p, newTiny("returning", "v1.2.0"))
		Eventually(w.read(ctx, p)).Should(beReady("v1.2.0"))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: new(1)} })
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.UnsafeCRDsReason, object+": not in v1.0.0",
			v1alpha2.AllowUnsafeCRDAnnotation+": "+second.crd()+"@v1.0.0"))
		w.createOperatorDeployment(ctx)
		Expect(capstan(ctx, "diff", "infrastructure-returning", "--revision", "1")).To(ContainSubstring(object))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: second.crd() + "@v1.0.0"})
		})
		Eventually(w.read(ctx, p)).Should(beReadyWith(v1alpha2.HealthyReason, "v1.0.0"))
	})

	It("may go to another provider", func(ctx SpecContext) {
		first, second, p := dropping(ctx, "giving")

		Eventually(func() error { return w.client.Create(ctx, first.object("v1", "given")) }).Should(Succeed())

		taking := newTiny("taking", "v1.0.0")
		taking.components = strings.NewReplacer("tinytaking", "tinygiving", "Tinytaking", "Tinygiving").
			Replace(taking.components)
		r := install(ctx, taking)
		Eventually(w.read(ctx, r)).Should(beStalled(v1alpha2.CRDConflictReason))

		upgrade(ctx, p, second)
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Eventually(w.read(ctx, r)).Should(beReady("v1.0.0"))
	})

	It("are created again when one is deleted, with a warning", func(ctx SpecContext) {
		t := newTiny("deleted", "v1.0.0")
		p := install(ctx, t)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		object := t.object("v1", "held")
		object.SetFinalizers([]string{"example.com/held"})
		Eventually(func() error { return w.client.Create(ctx, object) }).Should(Succeed())

		before := w.definition(ctx, t.crd())
		Expect(w.client.Delete(ctx, before.DeepCopy())).To(Succeed())
		Eventually(w.events(ctx, p)).Should(
			ContainElement(And(HaveField("Reason", v1alpha2.CRDDeletingReason), HaveField("Note", ContainSubstring(t.crd())))))
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.CRDsNotReadyReason,
			t.crd()+" is being deleted", "remove the finalizers"))

		By("not calling the version healthy while another one is asked for")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v9.9.9" })
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.VersionNotFoundReason,
			"v1.0.0 is installed; v9.9.9 is not applied: ", "; CustomResourceDefinition "+t.crd()+" is being deleted"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })

		Expect(bedtest.Edit(ctx, w.client, object, func(object *unstructured.Unstructured) {
			object.SetFinalizers(nil)
		})).To(Succeed())
		Eventually(func(g Gomega) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(before), crd)).To(Succeed())
			g.Expect(crd.UID).NotTo(Equal(before.UID))
		}).Should(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It(
		"are kept in a downgrade, which is rejected if the old managers cannot work with them",
		func(ctx SpecContext) {
			w.offer(ctx, newTiny("downgrade", "v1.0.0").serving("v1alpha9"))
			w.offer(ctx, newTiny("downgrade", "v1.1.0").serving("v1"))
			newest := newTiny("downgrade", "v1.2.0").serving("v2", "v1")
			p := install(ctx, newest)
			Eventually(w.read(ctx, p)).Should(beReady("v1.2.0"))
			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
			Expect(names(w.definition(ctx, newest.crd()))).To(Equal([]string{"v2", "v1"}))

			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })
			Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.UnsupportedProviderDowngradeReason,
				"v1.0.0 cannot work with CustomResourceDefinition ", " of v1.2.0", "v1alpha9"))
			Expect(w.helm(ctx, "helm", "list", "-n", "downgrade")).To(ContainElement(HaveField("AppVersion", "v1.1.0")))
		},
	)

	It("are restored, or Ready names them, if they are lost together with the chart", func(ctx SpecContext) {
		t := newTiny("lost", "v1.0.0")
		p := install(ctx, t)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		Expect(w.operator.Stop()).To(Succeed())
		Expect(w.client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(t.name))).To(Succeed())
		Expect(w.client.Delete(ctx, t.definition(nil))).To(Succeed())
		Eventually(gone(ctx, w, t.definition(nil))).Should(BeTrue())
		w.start()

		Eventually(func(g Gomega) {
			if gone(ctx, w, t.definition(nil))() {
				g.Expect(w.read(ctx, p)(g)).To(notBeReadyAt(t.crd()))
			}
		}).Should(Succeed())

		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		Eventually(gone(ctx, w, t.definition(nil))).Should(BeFalse())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It(
		"are kept in a rollback, which is rejected if the old managers cannot work with them",
		func(ctx SpecContext) {
			oldest := newTiny("rollback", "v1.0.0").serving("v1alpha9")
			w.offer(ctx, newTiny("rollback", "v1.1.0").serving("v1", "v1alpha9"))
			w.offer(ctx, newTiny("rollback", "v1.2.0").serving("v1"))
			p := install(ctx, oldest)
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

			for _, version := range []string{"v1.1.0", "v1.2.0"} {
				update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = version })
				Eventually(w.read(ctx, p)).Should(beReady(version))
			}

			back := func(revision int) {
				update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: &revision} })
			}
			back(1)
			Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.UnsupportedProviderDowngradeReason,
				"v1.0.0 cannot work with CustomResourceDefinition ", " of v1.2.0", "v1alpha9"))
			back(2)
			Eventually(w.read(ctx, p)).Should(beReadyWith(v1alpha2.HealthyReason, "v1.1.0"))
			Expect(names(w.definition(ctx, oldest.crd()))).To(Equal([]string{"v1"}))
		},
	)
})

// events returns a function that lists the events about an object.
func (w *world) events(ctx context.Context, about client.Object) func(Gomega) []eventsv1.Event {
	return func(g Gomega) []eventsv1.Event {
		list := &eventsv1.EventList{}
		g.Expect(w.client.List(ctx, list, client.InNamespace(about.GetNamespace()))).To(Succeed())

		var found []eventsv1.Event

		for _, e := range list.Items {
			if e.Regarding.Name == about.GetName() {
				found = append(found, e)
			}
		}

		return found
	}
}
