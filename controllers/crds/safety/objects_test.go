package safety_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/test/bed"
)

func TestSafety(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "CRD safety")
}

var (
	definitions clientset.Interface
	client      dynamic.Interface
)

var _ = BeforeSuite(func(ctx SpecContext) {
	b, err := bed.Start(ctx, bed.Options{Nodes: -1, WithoutCertManager: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.Stop)
	definitions, err = clientset.NewForConfig(b.Config())
	Expect(err).NotTo(HaveOccurred())

	config := b.Config()
	config.WarningHandler = rest.NoWarnings{}
	client, err = dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(15*time.Minute))

// Each spec has its own API group, so that it does not have to wait until the API server has cleaned
// up after another one.
var _ = BeforeEach(func() {
	scenarios++
	group := samples.Group

	DeferCleanup(func() { samples.Group = group })

	samples.Group = fmt.Sprintf("scenario-%d.example.com", scenarios)
})

var scenarios int

// limit of a scenario.
const limit = SpecTimeout(3 * time.Minute)

// install creates CRDs and waits until they are served.
func install(ctx context.Context, all ...*crd) {
	GinkgoHelper()

	for _, d := range all {
		_, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, d, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}

	for _, d := range all {
		for _, v := range d.Spec.Versions {
			resource := schema.GroupVersionResource{Group: d.Spec.Group, Version: v.Name, Resource: d.Spec.Names.Plural}
			if v.Served {
				Eventually(ctx, func() error { _, err := client.Resource(resource).List(ctx, metav1.ListOptions{}); return err }).
					WithTimeout(time.Minute).
					Should(Succeed())
			}
		}
	}
}

// remove removes CRDs with their objects.
func remove(ctx context.Context, all []*crd) {
	GinkgoHelper()

	crds := definitions.ApiextensionsV1().CustomResourceDefinitions()
	for _, d := range all {
		Expect(crds.Delete(ctx, d.Name, metav1.DeleteOptions{})).To(Succeed())
	}

	for _, d := range all {
		Eventually(ctx, func() error { _, err := crds.Get(ctx, d.Name, metav1.GetOptions{}); return err }).
			WithTimeout(2 * time.Minute).Should(Satisfy(apierrors.IsNotFound))
	}
}

func live(ctx context.Context, name string) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()

	crd, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())

	return crd
}

// replace updates a CRD without any checks.
func replace(ctx context.Context, desired *apiextensionsv1.CustomResourceDefinition) error {
	crd := live(ctx, desired.Name)
	crd.Spec = desired.Spec
	_, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Update(ctx, crd, metav1.UpdateOptions{})

	return err
}

func create(ctx context.Context, o *unstructured.Unstructured) {
	GinkgoHelper()

	_, err := client.Resource(samples).Namespace("default").Create(ctx, o, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred(), o.GetName())
}

func get(ctx context.Context, name string) *unstructured.Unstructured {
	GinkgoHelper()

	o, err := client.Resource(samples).Namespace("default").Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())

	return o
}

// recreated returns the API server's error if an object were created again under another name.
func recreated(ctx context.Context, o *unstructured.Unstructured) error {
	again := o.DeepCopy()
	again.SetName(o.GetName() + "-again")
	again.SetResourceVersion("")
	again.SetUID("")
	_, err := client.Resource(samples).
		Namespace("default").
		Create(ctx, again, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})

	return err
}

// touched returns the API server's error if only the finalizers of an object were changed.
func touched(ctx context.Context, o *unstructured.Unstructured) error {
	patch := []byte(`{"metadata":{"finalizers":["example.com/touched"]}}`)
	_, err := client.Resource(samples).
		Namespace("default").
		Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})

	return err
}

func check(ctx context.Context, desired *apiextensionsv1.CustomResourceDefinition) *safety.Report {
	GinkgoHelper()

	report, err := safety.Check(ctx, safety.Input{
		Changes: []safety.Change{{Live: live(ctx, desired.Name), Desired: desired}},
		Objects: safety.ClusterObjects{Client: client},
	})
	Expect(err).NotTo(HaveOccurred())

	return report
}

// affected returns the names of the objects that findings have as examples.
func affected(report *safety.Report) []string {
	var names []string

	for _, f := range report.Findings {
		for _, e := range f.Examples {
			names = append(names, e.Name)
		}
	}

	slices.Sort(names)

	return slices.Compact(names)
}

var _ = Describe("Check", func() {
	It(
		"agrees with what the API server does to real objects, for each change of a field",
		limit,
		func(ctx SpecContext) {
			install(ctx, definition(changes, false))

			var broken []string

			before := map[string]*unstructured.Unstructured{}

			for i, c := range changes {
				if c.broken != "" {
					o := sample(fmt.Sprintf("broken-%d", i), c.name, c.broken)
					broken = append(broken, o.GetName())
					create(ctx, o)
				}

				if c.fine != "" {
					create(ctx, sample(fmt.Sprintf("fine-%d", i), c.name, c.fine))
				}
			}

			slices.Sort(broken)

			all, err := client.Resource(samples).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())

			for i := range all.Items {
				before[all.Items[i].GetName()] = &all.Items[i]
			}

			desired := definition(changes, true)
			report := check(ctx, desired)
			Expect(affected(report)).To(Equal(broken), "%s", report)

			Expect(replace(ctx, desired)).To(Succeed())

			last := fmt.Sprintf("broken-%d", slices.IndexFunc(changes, func(c change) bool { return c.name == "enum" }))

			Eventually(ctx, func() error { return recreated(ctx, get(ctx, last)) }).
				WithTimeout(time.Minute).
				Should(HaveOccurred(), "the new schema is in force")

			for i, c := range changes {
				if c.fine != "" {
					o := get(ctx, fmt.Sprintf("fine-%d", i))
					Expect(recreated(ctx, o)).To(Succeed(), c.name)
					Expect(touched(ctx, o)).To(Succeed(), c.name)
				}

				if c.broken == "" {
					continue
				}

				o := get(ctx, fmt.Sprintf("broken-%d", i))
				if c.drops {
					Expect(recreated(ctx, o)).To(Succeed(), c.name)
					Expect(o.Object["spec"]).NotTo(Equal(before[o.GetName()].Object["spec"]), c.name)

					continue
				}

				Expect(apierrors.IsInvalid(recreated(ctx, before[o.GetName()]))).
					To(BeTrue(), "%s: %v", c.name, recreated(ctx, before[o.GetName()]))
			}
		},
	)

	It("reports an error if the API server would reject every update", limit, func(ctx SpecContext) {
		before, after := withStatus(""), withStatus("")
		after.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = apiextensionsv1.ValidationRules{
			{
				Rule:    "!has(self.status) || !has(self.status.phase) || self.status.phase != 'Old'",
				Message: "Old is no longer a phase",
			},
		}

		install(ctx, before)
		create(ctx, empty("healthy"))
		create(ctx, empty("stuck"))
		Expect(setPhase(ctx, "stuck", "Old")).To(Succeed())
		report := check(ctx, after)
		Expect(report.WithLevel(safety.Error)).To(HaveLen(1), "%s", report)
		Expect(report.Message()).To(And(
			ContainSubstring("default/stuck, and the API server will reject every update"),
			ContainSubstring("Old is no longer a phase"),
			Not(ContainSubstring("healthy")),
		))

		Expect(replace(ctx, after)).To(Succeed())
		Eventually(ctx, func() error { return touched(ctx, get(ctx, "stuck")) }).
			WithTimeout(time.Minute).
			Should(Satisfy(apierrors.IsInvalid))
		Expect(touched(ctx, get(ctx, "healthy"))).To(Succeed())
	})

	It("only warns if the status breaks but objects can be updated", limit, func(ctx SpecContext) {
		before, after := withStatus(""), withStatus("^New$")
		install(ctx, before)
		create(ctx, empty("old"))
		Expect(setPhase(ctx, "old", "Old")).To(Succeed())
		report := check(ctx, after)
		Expect(report.Findings).To(HaveLen(1))
		Expect(report.Findings[0].Level).To(Equal(safety.Warning), "%s", report)
		Expect(report.Findings[0].Affected).To(Equal(1))

		Expect(replace(ctx, after)).To(Succeed())
		Eventually(ctx, func() error { return setPhase(ctx, "old", "Older", metav1.DryRunAll) }).
			WithTimeout(time.Minute).
			Should(Satisfy(apierrors.IsInvalid), "the new schema is in force")
		Expect(touched(ctx, get(ctx, "old"))).To(Succeed())
		Expect(setPhase(ctx, "old", "New", metav1.DryRunAll)).To(Succeed())
	})

	It(
		"reports an error if managed fields name a removed version, which breaks server-side apply",
		limit,
		func(ctx SpecContext) {
			before, after := withVersions("v1alpha1"), withVersions()
			install(ctx, before)

			applyIn := func(version, name string) error {
				o := empty(name)
				o.SetAPIVersion(samples.Group + "/" + version)
				o.SetLabels(map[string]string{"version": version})
				_, err := client.Resource(samples.GroupResource().WithVersion(version)).
					Namespace("default").
					Apply(ctx, name, o, metav1.ApplyOptions{FieldManager: "client", Force: true})

				return err
			}
			Expect(applyIn("v1alpha1", "old")).To(Succeed())

			report := check(ctx, after)
			Expect(report.WithLevel(safety.Error)).To(HaveLen(1), "%s", report)
			Expect(report.Findings[0].Rule).To(Equal(safety.RuleServedVersionRemoved))
			Expect(affected(report)).To(Equal([]string{"old"}))

			Expect(replace(ctx, after)).To(Succeed())
			Eventually(ctx, func() error { return applyIn("v1alpha1", "probe") }).
				WithTimeout(time.Minute).
				Should(Satisfy(apierrors.IsNotFound), "the new CRD is in force")
			Expect(applyIn("v1", "old")).To(MatchError(ContainSubstring("invalid group/version")))
			Expect(applyIn("v1", "newer")).To(Succeed())

			without := []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)
			_, err := client.Resource(samples).
				Namespace("default").
				Patch(ctx, "old", types.JSONPatchType, without, metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(applyIn("v1", "old")).To(Succeed(), "the remedy helps")
		},
	)

	It("reports errors regardless of objects where the API server rejects the change", limit, func(ctx SpecContext) {
		before := withVersions("v1alpha1")
		install(ctx, before)

		for rule, change := range map[safety.Rule]func(*crd){
			safety.RuleScopeChanged:         clusterScoped,
			safety.RuleGroupChanged:         func(d *crd) { d.Spec.Group = "example.org" },
			safety.RuleKindChanged:          func(d *crd) { d.Spec.Names.Kind = "Example" },
			safety.RuleStoredVersionRemoved: func(d *crd) { d.Spec.Versions[0].Name = "v2" },
		} {
			after := withVersions("v1alpha1")
			change(after)
			report := check(ctx, after)
			Expect(report.HasErrors()).To(BeTrue(), "%s", rule)
			Expect(report.Findings[0].Rule).To(Equal(rule), "%s", report)
			Expect(replace(ctx, after)).To(Satisfy(apierrors.IsInvalid), "%s", rule)
		}
	})

	It("warns if objects cannot be read because a conversion webhook fails", limit, func(ctx SpecContext) {
		url := "https://127.0.0.1:1/convert"

		before, after := withVersions("v1alpha1"), withVersions("v1alpha1")
		for _, crd := range []*apiextensionsv1.CustomResourceDefinition{before, after} {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url},
				},
			}
		}

		delete(after.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties, "status")
		install(ctx, before)
		create(ctx, empty("unreadable"))
		report := check(ctx, after)
		Expect(report.WithLevel(safety.Error)).To(HaveLen(1), "the level of the rule: %s", report)
		Expect(report.WithLevel(safety.Error)[0].Rule).To(Equal(safety.RuleFieldRemoved))
		Expect(report.WithLevel(safety.Warning)).To(HaveLen(1))
		Expect(report.WithLevel(safety.Warning)[0].Rule).To(Equal(safety.RuleObjectsUnreadable))
		Expect(report.String()).To(ContainSubstring("samples." + samples.Group + " v1alpha1: the objects could not be read"))
	})

	It("reads many objects page by page, and ends early if many break", limit, func(ctx SpecContext) {
		before, after := withStatus(""), withStatus("")
		spec := after.Spec.Versions[0].Schema.OpenAPIV3Schema
		spec.Required = []string{"spec"}

		install(ctx, before)

		const many = 1100

		group := errgroup.Group{}
		group.SetLimit(16)

		for i := range many {
			group.Go(func() error {
				o := empty(fmt.Sprintf("sample-%04d", i))
				if i >= many/2 {
					o = sample(o.GetName(), "none", "null")
				}

				_, err := client.Resource(samples).Namespace("default").Create(ctx, o, metav1.CreateOptions{})

				return err
			})
		}

		Expect(group.Wait()).To(Succeed())

		seen := map[string]bool{}

		for o, err := range (safety.ClusterObjects{Client: client}).All(ctx, samples) {
			Expect(err).NotTo(HaveOccurred())

			seen[o.GetName()] = true
		}

		Expect(seen).To(HaveLen(many))

		report := check(ctx, after)
		Expect(report.Trials).To(Equal([]safety.Trial{
			{CRD: "samples." + samples.Group, Version: "v1", Objects: 100, Broken: 100, Partial: true},
		}))
		Expect(report.Findings[0].Examples).To(HaveLen(3))
	})
})

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
