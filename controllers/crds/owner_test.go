package crds

import (
	"cmp"
	"context"
	"errors"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/crds/trial"
)

// exists creates a CRD as another manager and waits until the cache has it.
func exists(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition, manager string) {
	GinkgoHelper()
	Expect(live.Create(ctx, d.DeepCopy(), client.FieldOwner(manager))).To(Succeed())
	Eventually(
		func() (*apiextensionsv1.CustomResourceDefinition, error) { return applier.getCached(ctx, d.Name) },
	).ShouldNot(BeNil())
	served(ctx, fileOf(d))
}

var _ = Describe("An existing CRD", func() {
	annotated := func(annotations ...string) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Annotations = map[string]string{}
			for i := 0; i < len(annotations); i += 2 {
				d.Annotations[annotations[i]] = annotations[i+1]
			}
		}
	}
	labelled := func(label string) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Labels = map[string]string{v1alpha2.ClusterctlProviderLabel: label}
		}
	}
	alone := func(d *apiextensionsv1.CustomResourceDefinition) { d.Labels = nil }

	DescribeTable(
		"is adopted if it has no owner or that of a predecessor, and refused with both names otherwise",
		func(ctx SpecContext, name, manager, owner string, changes ...func(*apiextensionsv1.CustomResourceDefinition)) {
			d := definitionOf(name, "v1")

			desired := fileOf(d)
			for _, change := range changes {
				change(d)
			}

			exists(ctx, d, manager)

			other := definitionOf(name+"other", "v1")

			sent, err := apply(ctx, wants(fileOf(other), desired))
			if owner == "" {
				Expect(err).NotTo(HaveOccurred())
				Expect(sent).To(ContainElement(d.Name))
				Expect(read(ctx, d.Name).Annotations).To(HaveKey(digestAnnotation))

				return
			}

			Expect(err).
				To(MatchError(And(ContainSubstring(d.Name), ContainSubstring(owner), ContainSubstring("infrastructure-x"))))
			Expect(apierrors.IsNotFound(live.Get(ctx, client.ObjectKeyFromObject(other), other))).
				To(BeTrue(), "nothing is applied at all")

			By("handing it over with the annotation")

			edit(ctx, d.Name, func(taken *apiextensionsv1.CustomResourceDefinition) {
				taken.SetAnnotations(map[string]string{v1alpha2.AdoptCRDAnnotation: "infrastructure-x"})
			})
			Eventually(func() error { _, err := apply(ctx, wants(desired)); return err }).Should(Succeed())
			Expect(read(ctx, d.Name).Labels).To(HaveKeyWithValue(v1alpha2.ClusterctlProviderLabel, "infrastructure-x"))
		},
		Entry("clusterctl's of the same provider", "aa", "clusterctl", ""),
		Entry("cluster-api-operator's of the same provider", "ab", "capi-operator", ""),
		Entry("a Helm chart's crds/ of the same provider", "ac", "helm", ""),
		Entry("another provider's, installed by clusterctl", "ad", "clusterctl", "the provider infrastructure-z",
			labelled("infrastructure-z")),
		Entry("another provider's, which has not applied it yet", "ai", "clusterctl", "the provider infrastructure-y",
			labelled("infrastructure-y")),
		Entry("that of a provider which is removed", "aj", "clusterctl", "", labelled("infrastructure-gone")),
		Entry("another provider's, installed by Capstan", "ae", v1alpha2.FieldOwner, "the provider infrastructure-y",
			labelled("infrastructure-y"), annotated(digestAnnotation, "0")),
		Entry("kubectl's, without a provider", "af", "kubectl-create", "kubectl-create", alone),
		Entry("another Helm release's", "ag", "helm", "the Helm release apps/tools",
			annotated(v1alpha2.HelmReleaseNameAnnotation, "tools", v1alpha2.HelmReleaseNamespaceAnnotation, "apps")),
		Entry("that of a Helm release which is uninstalled", "ak", "helm", "", alone,
			annotated(v1alpha2.HelmReleaseNameAnnotation, "tools", v1alpha2.HelmReleaseNamespaceAnnotation, "left")),
		Entry("that of a Helm release which is uninstalled, of a provider that is not", "al", "helm",
			"the provider infrastructure-z", labelled("infrastructure-z"),
			annotated(v1alpha2.HelmReleaseNameAnnotation, "tools", v1alpha2.HelmReleaseNamespaceAnnotation, "left")),
		Entry("that of a Helm release which is uninstalled, from another program", "am", "kustomize-controller",
			"belongs to kustomize-controller, but", alone,
			annotated(v1alpha2.HelmReleaseNameAnnotation, "tools", v1alpha2.HelmReleaseNamespaceAnnotation, "left")),
		Entry("this very release's, from a chart with CRDs as templates", "ah", "helm", "",
			annotated(
				v1alpha2.HelmReleaseNameAnnotation, "infrastructure-x",
				v1alpha2.HelmReleaseNamespaceAnnotation, "target")),
	)

	It("is refused while another program keeps applying it", func(ctx SpecContext) {
		d := definitionOf("ba", "v1")

		//nolint:staticcheck // there is no apply configuration for a CRD with these fields
		Expect(live.Patch(ctx, d.DeepCopy(), client.Apply, client.FieldOwner("kustomize-controller"))).To(Succeed())

		served(ctx, fileOf(d))
		_, err := apply(ctx, wants(fileOf(d)))
		Expect(err).To(MatchError(ContainSubstring("belongs to kustomize-controller")))
	})

	It("is adopted if Helm 4 has applied it for a release that is uninstalled", func(ctx SpecContext) {
		d := definitionOf("bc", "v1")
		annotated(v1alpha2.HelmReleaseNameAnnotation, "tools", v1alpha2.HelmReleaseNamespaceAnnotation, "left")(d)

		//nolint:staticcheck // there is no apply configuration for a CRD with these fields
		Expect(live.Patch(ctx, d.DeepCopy(), client.Apply, client.FieldOwner("helm"))).To(Succeed())

		served(ctx, fileOf(d))
		Expect(apply(ctx, wants(fileOf(definitionOf("bc", "v1"))))).To(ConsistOf(d.Name))
	})

	It("is taken over from a provider whose chart no longer includes it", func(ctx SpecContext) {
		d := definitionOf("bb", "v1")
		desired := fileOf(d)
		labelled("infrastructure-y")(d)
		annotated(digestAnnotation, "0")(d)
		exists(ctx, d, v1alpha2.FieldOwner)

		request := wants(desired)
		request.Includes = func(_ context.Context, label, crd string) (bool, error) {
			return label != "infrastructure-y" || crd != d.Name, nil
		}
		sent, err := apply(ctx, request)
		Expect(err).NotTo(HaveOccurred())
		Expect(sent).To(Equal([]string{d.Name}))
	})
})

var _ = Describe("The newest version of a provider's CRDs", func() {
	It("is known if it is higher than the given one", func(ctx SpecContext) {
		d := definitionOf("na", "v1")
		d.Labels = map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-newest"}
		d.Annotations = map[string]string{digestAnnotation: "0", versionAnnotation: "v1.1.0"}
		exists(ctx, d, v1alpha2.FieldOwner)

		for version, newer := range map[string]string{"v1.0.0": "v1.1.0", "v1.1.0": "", "v1.2.0": ""} {
			Eventually(func() (string, error) {
				return applier.NewerVersion(ctx, "infrastructure-newest", version)
			}).Should(Equal(newer), version)
		}

		Expect(applier.NewerVersion(ctx, "infrastructure-other", "v1.0.0")).To(BeEmpty())
	})
})

var _ = Describe("An unmanaged CRD", func() {
	checkUnmanaged := func(ctx context.Context, r Request) func() error {
		return func() error {
			plan, err := applier.Plan(ctx, r)
			if err != nil {
				return err
			}

			if plan.HasChanges() {
				return nil
			}

			return applier.CheckUnmanaged(ctx, plan)
		}
	}

	It("is never changed and must be compatible", func(ctx SpecContext) {
		d := definitionOf("ca", "v1")
		d.Labels = nil
		request := wants(fileOf(definitionOf("ca", "v2")))
		request.Unmanaged = []string{d.Name}
		Expect(checkUnmanaged(ctx, request)()).
			To(MatchError(ContainSubstring("is not managed by Capstan and does not exist")))

		exists(ctx, d, "other")
		Eventually(checkUnmanaged(ctx, request)).Should(MatchError(ContainSubstring("does not serve the version")))
		Expect(applier.concerned(read(ctx, d.Name))).To(ContainElement("infrastructure-x"))
		before := read(ctx, d.Name)

		edit(ctx, d.Name, func(newer *apiextensionsv1.CustomResourceDefinition) {
			newer.Spec.Versions = definitionOf("ca", "v1", "v2").Spec.Versions
		})
		Eventually(checkUnmanaged(ctx, request)).Should(Succeed())
		after := read(ctx, d.Name)
		Expect(after.Labels).To(BeEmpty())
		Expect(after.Annotations).To(Equal(before.Annotations))
	})

	It("keeps the versions that its owner publishes from being removed", func(ctx SpecContext) {
		before, after := definitionOf("ce", "v1", "v1alpha1"), definitionOf("ce", "v1")
		Expect(apply(ctx, wants(fileOf(before)))).To(HaveLen(1))
		served(ctx, fileOf(before))

		needs := func(version string) {
			GinkgoHelper()

			request := wants(fileOf(definitionOf("ce", version)))
			request.Label, request.Policy = "addon-y", v1alpha2.CRDsNone
			Expect(checkUnmanaged(ctx, request)()).To(Succeed())
		}
		check := func() *trial.Report {
			GinkgoHelper()

			plan, err := applier.Plan(ctx, wants(fileOf(after)))
			Expect(err).NotTo(HaveOccurred())
			report, err := applier.CheckChanges(ctx, plan, nil)
			Expect(err).NotTo(HaveOccurred())

			return report
		}

		needs("v1alpha1")
		Expect(check().Message()).To(Equal("ces.example.com v1alpha1: the version is removed, but addon-y needs it; " +
			"upgrade addon-y first to a version that does not"))

		needs("v1")
		Expect(check().Refused()).To(BeFalse())

		needs("v1alpha1")
		applier.Forget("addon-y")
		Expect(check().Refused()).To(BeFalse(), "the other provider is gone")
	})

	It("is created but not updated with CreateOnly, and neither with None", func(ctx SpecContext) {
		first, second := fileOf(definitionOf("cb", "v1")), fileOf(definitionOf("cb", "v1", "v2"))
		request := wants(first)
		request.Policy = v1alpha2.CRDsNone
		Expect(apply(ctx, request)).To(BeEmpty())
		request.Policy = v1alpha2.CRDsCreateOnly
		Expect(apply(ctx, request)).To(HaveLen(1))
		served(ctx, first)

		request.Files = []chart.File{second}

		Eventually(func() ([]string, error) { return apply(ctx, request) }).Should(BeEmpty())
		Expect(read(ctx, "cbs.example.com").Spec.Versions).To(HaveLen(1))
	})

	It(
		"is kept if it is newer, and a downgrade is refused if the old managers cannot work with it",
		func(ctx SpecContext) {
			newer := definitionOf("cc", "v2", "v1")
			Expect(apply(ctx, wants(fileOf(newer)))).To(HaveLen(1))
			served(ctx, fileOf(newer))
			older := wants(fileOf(definitionOf("cc", "v1")))
			older.Version = "v1.0.9"
			Eventually(checkUnmanaged(ctx, older)).Should(Succeed())
			Expect(apply(ctx, older)).To(BeEmpty())
			Expect(read(ctx, newer.Name).Spec.Versions).To(HaveLen(2))

			incompatible := wants(fileOf(definitionOf("cc", "v1alpha9")))
			incompatible.Version = "v1.0.8"
			Expect(checkUnmanaged(ctx, incompatible)()).To(MatchError(And(
				ContainSubstring("v1.0.8 cannot work with CustomResourceDefinition ccs.example.com of v1.1.0"),
				ContainSubstring("v1alpha9"))))
		},
	)
})

func TestOtherInstallation(t *testing.T) {
	for name, c := range map[string]struct {
		owner, adopter string
		label          string
		err            error
		want           string
	}{
		"the own one":                              {owner: "target/b"},
		"an earlier resource's":                    {owner: "target/a"},
		"one applied by an older version":          {},
		"another installed release's":              {owner: "installed/a", want: "Helm release installed/infrastructure-x"},
		"that of one that is uninstalled":          {owner: "left/a"},
		"another installed release's, handed over": {owner: "installed/a", adopter: "infrastructure-x"},
		"another provider's":                       {owner: "installed/a", label: "infrastructure-y"},
		"an unknown one":                           {owner: "installed/a", err: errors.New("timeout"), want: "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hasRelease := func(_ context.Context, release types.NamespacedName) (bool, error) {
				g.Expect(release.Name).To(Equal("infrastructure-x"))
				return release.Namespace == "installed", c.err
			}

			live := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{v1alpha2.ClusterctlProviderLabel: cmp.Or(c.label, "infrastructure-x")},
				Annotations: map[string]string{v1alpha2.AdoptCRDAnnotation: c.adopter, digestAnnotation: "0"},
			}}
			if c.owner != "" {
				live.Annotations[ownerAnnotation] = c.owner
			}

			r := Request{Label: "infrastructure-x", Release: "infrastructure-x", Namespace: "target", Resource: "b",
				Includes: func(context.Context, string, string) (bool, error) { return false, nil }}
			err := NewApplier(Clients{HasRelease: hasRelease}).checkOwnership(t.Context(), r, live)

			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}
