package trial_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness/suite"
)

func TestTrial(t *testing.T) {
	suite.Suite{Name: "The trial of CRD changes"}.Run(t)
}

var (
	definitions clientset.Interface
	client      dynamic.Interface
)

var _ = BeforeSuite(func(SpecContext) {
	b := bedtest.StartAPIServer(GinkgoT())

	var err error

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

func check(ctx context.Context, desired *apiextensionsv1.CustomResourceDefinition) *trial.Report {
	GinkgoHelper()

	change := trial.Change{Live: live(ctx, desired.Name), Desired: desired}
	findings, err := trial.Run(ctx, change, trial.ClusterObjects{Client: client})
	Expect(err).NotTo(HaveOccurred())

	return trial.NewReport(findings, nil)
}

// affected returns the names of the objects that findings have as examples.
func affected(report *trial.Report) []string {
	var names []string

	for _, f := range report.Findings {
		for _, example := range f.Examples {
			names = append(names, strings.TrimPrefix(example, "default/"))
		}
	}

	slices.Sort(names)

	return slices.Compact(names)
}
