package safety_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/test/bed"
)

func TestSafety(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The judgement of CRD changes")
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
	client, err = dynamic.NewForConfig(b.Config())
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(15*time.Minute))

var samples = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "samples"}

// install creates a CRD, waits until it is served and removes it, with its objects, when the test is over.
func install(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	crds := definitions.ApiextensionsV1().CustomResourceDefinitions()
	_, err := crds.Create(ctx, crd, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(crds.Delete(ctx, crd.Name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(ctx, func() bool { _, err := crds.Get(ctx, crd.Name, metav1.GetOptions{}); return apierrors.IsNotFound(err) }).
			WithTimeout(time.Minute).Should(BeTrue())
	})
	for _, v := range crd.Spec.Versions {
		Eventually(ctx, func() error {
			_, err := client.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name, Resource: crd.Spec.Names.Plural}).List(ctx, metav1.ListOptions{})
			return err
		}).WithTimeout(time.Minute).Should(Succeed())
	}
}

func live(ctx context.Context, name string) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	crd, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return crd
}

// replace applies a CRD, whatever it breaks.
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

// recreated is what the API server says when an object, as it is, would be created again under another name.
func recreated(ctx context.Context, o *unstructured.Unstructured) error {
	again := o.DeepCopy()
	again.SetName(o.GetName() + "-again")
	again.SetResourceVersion("")
	again.SetUID("")
	_, err := client.Resource(samples).Namespace("default").Create(ctx, again, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// touched is what the API server says when nothing but an object's finalizers would change.
func touched(ctx context.Context, o *unstructured.Unstructured) error {
	patch := []byte(`{"metadata":{"finalizers":["example.com/touched"]}}`)
	_, err := client.Resource(samples).Namespace("default").Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func check(ctx context.Context, desired *apiextensionsv1.CustomResourceDefinition) *safety.Report {
	GinkgoHelper()
	report, err := safety.Check(ctx, safety.Input{
		Changes: []safety.Change{{Live: live(ctx, desired.Name), Desired: desired}}, Objects: safety.Cluster{Client: client},
	})
	Expect(err).NotTo(HaveOccurred())
	return report
}

// affected are the names of the objects that findings have as examples.
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

var _ = Describe("The judgement of a change", func() {
	It("agrees with what the API server does to real objects, for each change of the matrix", func(ctx SpecContext) {
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
		Eventually(ctx, func() error { return recreated(ctx, get(ctx, last)) }).Should(HaveOccurred(), "the new schema is in force")
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
			if c.loses {
				Expect(recreated(ctx, o)).To(Succeed(), c.name)
				Expect(o.Object["spec"]).NotTo(Equal(before[o.GetName()].Object["spec"]), c.name)
				continue
			}
			Expect(apierrors.IsInvalid(recreated(ctx, before[o.GetName()]))).To(BeTrue(), "%s: %v", c.name, recreated(ctx, before[o.GetName()]))
		}
	})
})
