package flux

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/image"
)

const (
	dockerClusters = "dockerclusters.infrastructure.cluster.x-k8s.io"
	dockerMachines = "dockermachines.infrastructure.cluster.x-k8s.io"
	dockerWebhooks = "capd-validating-webhook-configuration"
)

var _ = Describe("A provider's chart", Ordered, func() {
	deployment := client.ObjectKey{Namespace: "capd-system", Name: "capd-controller-manager"}

	var machine *unstructured.Unstructured

	BeforeAll(func(ctx SpecContext) {
		push(ctx, "infrastructure-docker", "v1.0.0", nil)
		push(ctx, "infrastructure-docker", "v1.1.0", func(components []byte) []byte {
			return bytes.Replace(
				components,
				[]byte("    plural: dockermachines\n"),
				[]byte("    plural: dockermachines\n    shortNames: [dm]\n"),
				1,
			)
		})
	})

	It("is installed from an OCIRepository, as the docs show", func(ctx SpecContext) {
		apply(ctx, documented("gitops.md", "The chart without the operator", "1.13.5", "1.0.0"))
		Eventually(installed(ctx, "infrastructure-docker")).Should(HavePrefix("1.0.0"))
		Expect(imageOf(ctx, deployment)).To(HaveSuffix("capd-manager:v1.0.0"))

		machine = newMachine()
		Expect(admin.Create(ctx, machine)).To(Succeed())
	})

	It("has no drift, even after cert-manager has injected its certificates", func(ctx SpecContext) {
		injectCA(ctx)
		expectNoWrites(ctx, "infrastructure-docker")
	})

	It("is corrected when its objects are changed", func(ctx SpecContext) {
		live := &appsv1.Deployment{}
		Expect(admin.Get(ctx, deployment, live)).To(Succeed())
		Expect(
			admin.Patch(ctx, live, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":0}}`))),
		).To(Succeed())
		request(ctx, "infrastructure-docker")
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, deployment, live)).To(Succeed())
			g.Expect(*live.Spec.Replicas).To(BeEquivalentTo(1))
		}).Should(Succeed())
	})

	It("is upgraded with its CRDs, which keep cert-manager's certificates", func(ctx SpecContext) {
		apply(ctx, documented("gitops.md", "The chart without the operator", "1.13.5", "1.1.0"))
		request(ctx, "infrastructure-docker")
		Eventually(installed(ctx, "infrastructure-docker")).Should(HavePrefix("1.1.0"))
		Expect(imageOf(ctx, deployment)).To(HaveSuffix("capd-manager:v1.1.0"))
		Expect(definition(ctx, dockerMachines).Spec.Names.ShortNames).To(ConsistOf("dm"))
		Expect(definition(ctx, dockerClusters).Spec.Conversion.Webhook.ClientConfig.CABundle).To(Equal(authority()))
		Expect(webhooks(ctx).Webhooks[0].ClientConfig.CABundle).To(Equal(authority()))
	})

	It("is uninstalled without its CRDs and custom resources", func(ctx SpecContext) {
		before := definition(ctx, dockerMachines).UID
		uninstall(ctx, "infrastructure-docker")
		Expect(apierrors.IsNotFound(admin.Get(ctx, deployment, &appsv1.Deployment{}))).To(BeTrue())
		Expect(definition(ctx, dockerMachines).UID).To(Equal(before))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
		Expect(machine.GetDeletionTimestamp()).To(BeNil())
	})
})

var _ = Describe("The operator's chart", Ordered, func() {
	const operators = "capstan-system"

	core := &v1alpha2.CoreProvider{}
	key := client.ObjectKey{Namespace: "capi-system", Name: "cluster-api"}

	var (
		dir      string
		operator *harness.Operator
	)

	BeforeAll(func(ctx SpecContext) {
		push(ctx, "cluster-api", "v1.0.0", nil)

		dir = GinkgoT().TempDir()
		run(ctx, "helm", "package", filepath.Join(root, "charts/capstan"), "--destination", dir)
		archives, err := filepath.Glob(filepath.Join(dir, "capstan-*.tgz"))
		Expect(err).NotTo(HaveOccurred())
		Expect(archives).To(HaveLen(1))
		run(ctx, "helm", "push", "--plain-http", archives[0], "oci://"+registry+"/charts")
	})

	AfterAll(func() {
		if operator != nil {
			Expect(operator.Stop()).To(Succeed())
		}
	})

	It("is installed with providers, as the docs show", func(ctx SpecContext) {
		apply(ctx, documented("install.md", "Flux")+`
  driftDetection: {mode: enabled}
  values:
    providers:
      - kind: CoreProvider
        name: cluster-api
        namespace: capi-system
        spec: {version: v1.0.0}
`)
		Eventually(func() error { return admin.Get(ctx, key, core) }).Should(Succeed())

		program, err := harness.Program(ctx, root, dir, harness.OperatorProgram)
		Expect(err).NotTo(HaveOccurred())
		operator, err = harness.StartOperator(
			cluster,
			program,
			filepath.Join(dir, "operator.log"),
			"--upgrade-crds",
			"--chart-repository=http://"+registry+"/charts",
		)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, key, core)).To(Succeed())
			g.Expect(conditions.IsReady(core)).To(BeTrue(), conditions.GetMessage(core, v1alpha2.ReadyCondition))
		}).Should(Succeed())
		Eventually(installed(ctx, "capstan")).ShouldNot(BeEmpty())
	})

	It("has no drift while the operator works", func(ctx SpecContext) {
		expectNoWrites(ctx, "capstan")
	})

	It("leaves the operator's CRDs alone when it is upgraded and downgraded", func(ctx SpecContext) {
		const providers = "coreproviders.operator.cluster.x-k8s.io"

		before, version := definition(ctx, providers).Generation, installed(ctx, "capstan")

		pushOperator(ctx, "9.0.0", "other")
		request(ctx, "capstan")
		Eventually(version).Should(HavePrefix("9.0.0"))
		Expect(definition(ctx, providers).Spec.Names.Categories).NotTo(ContainElement("other"))

		apply(ctx, strings.Replace(documented("install.md", "Flux"), ">=0.1.0", ">=0.0.0 <9.0.0", 1))
		request(ctx, "capstan")
		Eventually(version).ShouldNot(HavePrefix("9.0.0"))
		Expect(definition(ctx, providers).Generation).To(Equal(before))
	})

	It("is uninstalled without the operator's CRDs and providers", func(ctx SpecContext) {
		uninstall(ctx, "capstan")
		err := admin.Get(ctx, client.ObjectKey{Namespace: operators, Name: "capstan"}, &appsv1.Deployment{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
		Expect(admin.Get(ctx, key, core)).To(Succeed())
		Expect(core.GetDeletionTimestamp()).To(BeNil())
		Expect(conditions.IsReady(core)).To(BeTrue())
	})
})

// pushOperator pushes the operator's chart to the registry as another version, with one more category in its CRDs.
func pushOperator(ctx context.Context, version, category string) {
	GinkgoHelper()

	dir := GinkgoT().TempDir()
	folder := filepath.Join(dir, "capstan")
	Expect(os.CopyFS(folder, os.DirFS(filepath.Join(root, "charts/capstan")))).To(Succeed())

	definitions, err := filepath.Glob(filepath.Join(folder, "crds", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(definitions).NotTo(BeEmpty())

	for _, file := range definitions {
		content, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())

		changed := bytes.Replace(content, []byte("    - capstan\n"), []byte("    - capstan\n    - "+category+"\n"), 1)
		Expect(changed).NotTo(Equal(content))
		Expect(os.WriteFile(file, changed, 0o600)).To(Succeed())
	}

	run(ctx, "helm", "package", folder, "--version", version, "--destination", dir)
	run(ctx, "helm", "push", "--plain-http", filepath.Join(dir, "capstan-"+version+".tgz"), "oci://"+registry+"/charts")
}

// push pushes the chart of a sample release to the registry. change may modify the components first.
func push(ctx context.Context, label, version string, change func([]byte) []byte) {
	GinkgoHelper()

	release, err := harness.Load(ctx, samples, harness.Wanted{Label: label, Version: version})
	Expect(err).NotTo(HaveOccurred())

	if change != nil {
		release.Bundle.Components = change(release.Bundle.Components)
	}

	made, err := chartgen.Build(release.Bundle)
	Expect(err).NotTo(HaveOccurred())

	c, err := oci.NewClient(transport.Options{})
	Expect(err).NotTo(HaveOccurred())

	ref, err := oci.Parse("http://" + registry + "/charts/" + label + ":" + oci.ChartTag(made.Metadata.Version))
	Expect(err).NotTo(HaveOccurred())

	_, err = image.PushChart(ctx, c, ref, made)
	Expect(err).NotTo(HaveOccurred())
}

// fluxObject returns an object of Flux of a kind.
func fluxObject(group, version, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	o.SetNamespace(namespace)
	o.SetName(name)

	return o
}

func helmRelease(name string) *unstructured.Unstructured {
	return fluxObject("helm.toolkit.fluxcd.io", "v2", "HelmRelease", name)
}

// installed returns the chart version that a HelmRelease has installed and reports as healthy.
// Before that, it is empty or an error.
func installed(ctx context.Context, name string) func(Gomega) string {
	return func(g Gomega) string {
		release := helmRelease(name)
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(release), release)).To(Succeed())
		observed, _, _ := unstructured.NestedInt64(release.Object, "status", "observedGeneration")
		g.Expect(observed).To(Equal(release.GetGeneration()))
		all, _, _ := unstructured.NestedSlice(release.Object, "status", "conditions")
		g.Expect(all).To(ContainElement(And(HaveKeyWithValue("type", "Ready"), HaveKeyWithValue("status", "True"))))

		history, _, _ := unstructured.NestedSlice(release.Object, "status", "history")
		g.Expect(history).NotTo(BeEmpty())

		return history[0].(map[string]any)["chartVersion"].(string)
	}
}

// request makes Flux reconcile a HelmRelease and its source now, and waits until it has.
func request(ctx context.Context, name string) {
	GinkgoHelper()

	now := fmt.Sprint(GinkgoT().Name(), GinkgoRandomSeed(), CurrentSpecReport().LeafNodeLocation.LineNumber)

	patch := client.RawPatch(
		"application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, now),
	)
	for _, o := range []*unstructured.Unstructured{
		fluxObject("source.toolkit.fluxcd.io", "v1", "OCIRepository", name),
		helmRelease(name),
	} {
		Expect(admin.Patch(ctx, o, patch)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			handled, _, _ := unstructured.NestedString(o.Object, "status", "lastHandledReconcileAt")
			g.Expect(handled).To(Equal(now))
		}).Should(Succeed())
	}
}

// expectNoWrites makes Flux compare a release with the cluster, and expects it to change nothing
// but its own objects.
func expectNoWrites(ctx context.Context, name string) {
	GinkgoHelper()

	writes := func(r bed.Request) bool {
		return r.Write() && !r.Lease() && r.Resource != "events" && !strings.HasSuffix(r.Group, ".toolkit.fluxcd.io")
	}
	compared, written := requests(func(r bed.Request) bool { return r.DryRun }), requests(writes)

	request(ctx, name)
	Expect(len(requests(func(r bed.Request) bool { return r.DryRun }))).To(BeNumerically(">", len(compared)))
	Expect(requests(writes)).To(Equal(written))
	Eventually(installed(ctx, name)).ShouldNot(BeEmpty())
}

// requests returns the requests of Flux for which keep returns true.
func requests(keep func(bed.Request) bool) []string {
	GinkgoHelper()

	all, err := cluster.Requests(func(r bed.Request) bool { return r.User == fluxUser && keep(r) })
	Expect(err).NotTo(HaveOccurred())

	var lines []string
	for _, r := range all {
		lines = append(lines, r.Verb+" "+r.URI)
	}

	return lines
}

// uninstall deletes a HelmRelease and waits until it is gone.
func uninstall(ctx context.Context, name string) {
	GinkgoHelper()

	release := helmRelease(name)
	Expect(admin.Delete(ctx, release)).To(Succeed())
	Eventually(func() bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(release), release))
	}).Should(BeTrue())
}

func imageOf(ctx context.Context, deployment client.ObjectKey) string {
	GinkgoHelper()

	live := &appsv1.Deployment{}
	Expect(admin.Get(ctx, deployment, live)).To(Succeed())

	return live.Spec.Template.Spec.Containers[0].Image
}

func definition(ctx context.Context, name string) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()

	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: name}, crd)).To(Succeed())

	return crd
}

func webhooks(ctx context.Context) *admissionregistrationv1.ValidatingWebhookConfiguration {
	GinkgoHelper()

	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: dockerWebhooks}, configuration)).To(Succeed())

	return configuration
}

// authority is a certificate like those of cert-manager.
func authority() []byte { return cluster.Config().CAData }

// injectCA injects the certificate's authority like cert-manager.
func injectCA(ctx context.Context) {
	GinkgoHelper()

	owner := client.FieldOwner("cert-manager-cainjector")

	Expect(bedtest.Edit(ctx, admin, definition(ctx, dockerClusters),
		func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = authority()
		}, owner)).To(Succeed())

	Expect(bedtest.Edit(ctx, admin, webhooks(ctx),
		func(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
			for i := range configuration.Webhooks {
				configuration.Webhooks[i].ClientConfig.CABundle = authority()
			}
		}, owner)).To(Succeed())
}

// newMachine returns a custom resource of the provider docker, in the only version of its kind.
func newMachine() *unstructured.Unstructured {
	m := &unstructured.Unstructured{}
	m.SetGroupVersionKind(
		schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "DockerMachine"},
	)
	m.SetNamespace("default")
	m.SetName("mine")

	return m
}
