package trial_test

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/crds/trial"
)

var _ = Describe("A trial", func() {
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
			Expect(affected(report)).To(Equal(broken), report.Message())

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

	It("refuses a change after which the API server would reject every update", limit, func(ctx SpecContext) {
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
		Expect(report.Findings).To(HaveLen(1), report.Message())
		Expect(report.Message()).To(And(
			ContainSubstring("breaks default/stuck"),
			ContainSubstring("Old is no longer a phase"),
			Not(ContainSubstring("healthy")),
		))

		Expect(replace(ctx, after)).To(Succeed())
		Eventually(ctx, func() error { return touched(ctx, get(ctx, "stuck")) }).
			WithTimeout(time.Minute).
			Should(Satisfy(apierrors.IsInvalid))
		Expect(touched(ctx, get(ctx, "healthy"))).To(Succeed())
	})

	It("accepts that the status breaks if objects can be updated", limit, func(ctx SpecContext) {
		before, after := withStatus(""), withStatus("^New$")
		install(ctx, before)
		create(ctx, empty("old"))
		Expect(setPhase(ctx, "old", "Old")).To(Succeed())
		report := check(ctx, after)
		Expect(report.Findings).To(BeEmpty())

		Expect(replace(ctx, after)).To(Succeed())
		Eventually(ctx, func() error { return setPhase(ctx, "old", "Older", metav1.DryRunAll) }).
			WithTimeout(time.Minute).
			Should(Satisfy(apierrors.IsInvalid), "the new schema is in force")
		Expect(touched(ctx, get(ctx, "old"))).To(Succeed())
		Expect(setPhase(ctx, "old", "New", metav1.DryRunAll)).To(Succeed())
	})

	It(
		"refuses to remove a version that managed fields name, which breaks server-side apply",
		limit,
		func(ctx SpecContext) {
			before, after := withVersions("v1alpha1"), withVersions()
			install(ctx, before)

			applyIn := func(version, name string, dryRun ...string) error {
				o := empty(name)
				o.SetAPIVersion(samples.Group + "/" + version)
				o.SetLabels(map[string]string{"version": version})
				_, err := client.Resource(samples.GroupResource().WithVersion(version)).
					Namespace("default").
					Apply(ctx, name, o, metav1.ApplyOptions{FieldManager: "client", Force: true, DryRun: dryRun})

				return err
			}
			Expect(applyIn("v1alpha1", "old")).To(Succeed())

			report := check(ctx, after)
			Expect(report.Findings).To(HaveLen(1), report.Message())
			Expect(report.Findings[0].Version).To(Equal("v1alpha1"))
			Expect(affected(report)).To(Equal([]string{"old"}))

			Expect(replace(ctx, after)).To(Succeed())
			Eventually(ctx, func() error { return applyIn("v1", "old", metav1.DryRunAll) }).
				WithTimeout(time.Minute).
				Should(MatchError(ContainSubstring("invalid group/version")), "the new CRD is in force")
			Expect(applyIn("v1alpha1", "probe")).To(Satisfy(apierrors.IsNotFound))
			Expect(applyIn("v1", "newer")).To(Succeed())

			without := []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)
			_, err := client.Resource(samples).
				Namespace("default").
				Patch(ctx, "old", types.JSONPatchType, without, metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(applyIn("v1", "old")).To(Succeed(), "the remedy helps")
		},
	)

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

		for o, err := range (trial.ClusterObjects{Client: client}).All(ctx, samples) {
			Expect(err).NotTo(HaveOccurred())

			seen[o.GetName()] = true
		}

		Expect(seen).To(HaveLen(many))

		report := check(ctx, after)
		Expect(report.Findings).To(HaveLen(1))
		Expect(report.Findings[0].Affected).To(Equal(100))
		Expect(report.Findings[0].Examples).To(HaveLen(2))
	})
})
