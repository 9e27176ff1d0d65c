package argocd

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

const (
	dockerClusters = "dockerclusters.infrastructure.cluster.x-k8s.io"
	dockerMachines = "dockermachines.infrastructure.cluster.x-k8s.io"
)

var _ = Describe("The operator's chart", Ordered, func() {
	const app = "capstan"

	core := &v1alpha2.CoreProvider{}
	key := client.ObjectKey{Namespace: "capi-system", Name: "cluster-api"}

	BeforeAll(func(ctx SpecContext) {
		startWorld(ctx)
		push(ctx, "cluster-api", "v1.0.0", nil)

		dir := GinkgoT().TempDir()
		run(ctx, "helm", "package", filepath.Join(root, "charts/capstan"), "--version", "0.1.0", "--destination", dir)
		run(ctx, "helm", "push", "--plain-http", filepath.Join(dir, "capstan-0.1.0.tgz"), "oci://"+registry+"/charts")
	})

	stop := func() {}

	AfterAll(func() { stop() })

	It("is installed with providers, and Healthy when they are Ready", func(ctx SpecContext) {
		apply(ctx, documented("install.md", "Argo CD", "{releaseName: capstan}", `
      releaseName: capstan
      valuesObject:
        crds: {upgrade: false}
        providers: [{kind: CoreProvider, name: cluster-api, namespace: capi-system, spec: {version: v1.0.0}}]
`)[0])
		Eventually(read(ctx, app)).Should(is(synced, progressing))

		stop = startOperator()

		Eventually(read(ctx, app)).Should(is(synced, healthy))
		Expect(admin.Get(ctx, key, core)).To(Succeed())
		Expect(conditions.IsReady(core)).To(BeTrue())
	})

	It("has no differences while the operator works", func(ctx SpecContext) {
		expectNoWrites(ctx, app)
	})

	It("is corrected when its objects are changed", func(ctx SpecContext) {
		expectCorrection(ctx, client.ObjectKey{Namespace: "capstan-system", Name: "capstan"}, 2)
		Eventually(read(ctx, app)).Should(is(synced, healthy))
	})

	It("is removed without the operator's CRDs and providers", func(ctx SpecContext) {
		remove(ctx, app)
		Expect(apierrors.IsNotFound(admin.Get(ctx,
			client.ObjectKey{Namespace: "capstan-system", Name: "capstan"}, &appsv1.Deployment{}))).To(BeTrue())
		Expect(admin.Get(ctx, key, core)).To(Succeed())
		Expect(core.GetDeletionTimestamp()).To(BeNil())
		Expect(conditions.IsReady(core)).To(BeTrue())
	})
})

var _ = Describe("A provider's chart", Ordered, func() {
	const app = "infrastructure-docker"

	var machine *unstructured.Unstructured

	deployment := client.ObjectKey{Namespace: "capd-system", Name: "capd-controller-manager"}

	BeforeAll(func(ctx SpecContext) {
		startWorld(ctx)
		push(ctx, app, "v1.0.0", nil)
		push(ctx, app, "v1.1.0", func(components []byte) []byte {
			return bytes.Replace(
				components,
				[]byte("    plural: dockermachines\n"),
				[]byte("    plural: dockermachines\n    shortNames: [dm]\n"),
				1,
			)
		})
		push(ctx, app, "v1.1.1", func(components []byte) []byte {
			return without(bytes.ReplaceAll(components, []byte("v1.1.0"), []byte("v1.1.1")), dockerMachines)
		})
	})

	upgrade := func(ctx context.Context, version string) {
		GinkgoHelper()

		apply(ctx, documented("gitops.md", "The chart without the operator", "1.13.5", version)[1])
	}

	It("is installed, as the docs show", func(ctx SpecContext) {
		upgrade(ctx, "1.0.0")
		Eventually(read(ctx, app)).Should(is(synced, progressing))
		issueCertificates(ctx, deployment.Namespace)
		Eventually(read(ctx, app)).Should(is(synced, healthy))
		Expect(running(ctx, deployment)).To(Equal("v1.0.0"))

		machine = newMachine()
		Expect(admin.Create(ctx, machine)).To(Succeed())
	})

	It("has no differences, even after cert-manager has injected its certificates", func(ctx SpecContext) {
		Expect(bedtest.Edit(ctx, admin, definition(ctx, dockerClusters),
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Conversion.Webhook.ClientConfig.CABundle = authority()
			}, client.FieldOwner("cert-manager-cainjector"))).To(Succeed())
		expectNoWrites(ctx, app)
	})

	It("is corrected when its objects are changed", func(ctx SpecContext) {
		expectCorrection(ctx, deployment, 1)
		Eventually(read(ctx, app)).Should(is(synced, healthy))
	})

	It("is upgraded with its CRDs, which keep cert-manager's certificates", func(ctx SpecContext) {
		upgrade(ctx, "1.1.0")
		Eventually(read(ctx, app)).Should(And(is(synced, healthy), HaveField("OperationState.SyncResult.Revision", "1.1.0")))
		Expect(running(ctx, deployment)).To(Equal("v1.1.0"))
		Expect(definition(ctx, dockerMachines).Spec.Names.ShortNames).To(ConsistOf("dm"))
		Expect(definition(ctx, dockerClusters).Spec.Conversion.Webhook.ClientConfig.CABundle).To(Equal(authority()))
	})

	It("loses what a new version no longer includes, except for CRDs", func(ctx SpecContext) {
		dropped := client.ObjectKey{Namespace: deployment.Namespace, Name: "capd-load-balancer"}
		Expect(apierrors.IsNotFound(admin.Get(ctx, dropped, &corev1.ConfigMap{}))).To(BeTrue())

		upgrade(ctx, "1.1.1")
		Eventually(read(ctx, app)).Should(And(is(synced, healthy), HaveField("Sync.Revision", "1.1.1"),
			HaveField("OperationState.SyncResult.Revision", "1.1.1")))
		expectNoWrites(ctx, app)
		Expect(definition(ctx, dockerMachines).DeletionTimestamp).To(BeNil())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
	})

	It("is removed without its CRDs and custom resources", func(ctx SpecContext) {
		before := definition(ctx, dockerMachines).UID

		remove(ctx, app)
		Expect(apierrors.IsNotFound(admin.Get(ctx, deployment, &appsv1.Deployment{}))).To(BeTrue())
		Expect(definition(ctx, dockerMachines).UID).To(Equal(before))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
		Expect(machine.GetDeletionTimestamp()).To(BeNil())
	})
})

// expectCorrection changes the replicas of a Deployment, and expects that Argo CD sets them back.
func expectCorrection(ctx context.Context, deployment client.ObjectKey, replicas int32) {
	GinkgoHelper()

	live := &appsv1.Deployment{}
	Expect(admin.Get(ctx, deployment, live)).To(Succeed())
	Expect(admin.Patch(ctx, live, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`)))).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, deployment, live)).To(Succeed())
		g.Expect(live.Spec.Replicas).To(HaveValue(Equal(replicas)))
	}).Should(Succeed())
}

// push pushes the chart of a sample release to the registry. change may modify the components first.
func push(ctx context.Context, label, version string, change func([]byte) []byte) {
	GinkgoHelper()

	release, err := harness.Load(ctx, samples, harness.Wanted{Label: label, Version: version})
	Expect(err).NotTo(HaveOccurred())

	release.Bundle.Version = version
	if change != nil {
		release.Bundle.Components = change(release.Bundle.Components)
	}

	Expect(harness.PushChart(ctx, registry, release)).To(Succeed())
}

// without returns components without the object of a name.
func without(components []byte, name string) []byte {
	GinkgoHelper()

	objects := strings.Split(string(components), "\n---\n")
	kept := make([]string, 0, len(objects))

	for _, object := range objects {
		if !strings.Contains(object, "\n  name: "+name+"\n") {
			kept = append(kept, object)
		}
	}

	Expect(kept).To(HaveLen(len(objects) - 1))

	return []byte(strings.Join(kept, "\n---\n"))
}

func definition(ctx context.Context, name string) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()

	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: name}, crd)).To(Succeed())

	return crd
}

// issueCertificates sets the status of all Issuers and Certificates of a namespace as cert-manager would.
func issueCertificates(ctx context.Context, namespace string) {
	GinkgoHelper()

	for _, kind := range []string{"Issuer", "Certificate"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: kind + "List"})
		Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		Expect(list.Items).NotTo(BeEmpty())

		for _, o := range list.Items {
			Expect(unstructured.SetNestedSlice(o.Object, []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Ready", "message": "it is up to date",
			}}, "status", "conditions")).To(Succeed())
			Expect(admin.Status().Update(ctx, &o)).To(Succeed())
		}
	}
}

// authority is a certificate like those of cert-manager.
func authority() []byte { return cluster.Config().CAData }

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
