package crds

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness/suite"
)

func TestCRDs(t *testing.T) {
	suite.Suite{Name: "CustomResourceDefinitions"}.Run(t)
}

var (
	control *bed.Bed
	config  *rest.Config
	live    client.Client
	applier *Applier
)

var _ = BeforeSuite(func(ctx SpecContext) {
	control = bedtest.Start(GinkgoT(), bed.Options{Nodes: -1, WithoutCertManager: true, WithoutControllers: true})
	config = control.Config()
	config.QPS = -1

	full := runtime.NewScheme()
	Expect(apiextensionsv1.AddToScheme(full)).To(Succeed())

	var err error

	live, err = client.New(config, client.Options{Scheme: full})
	Expect(err).NotTo(HaveOccurred())

	light := runtime.NewScheme()
	Expect(AddToScheme(light)).To(Succeed())
	definitions, err := cache.New(config, cache.Options{Scheme: light, DefaultTransform: StripSchemas})
	Expect(err).NotTo(HaveOccurred())

	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)

	go func() {
		defer GinkgoRecover()

		Expect(definitions.Start(running)).To(Succeed())
	}()

	Expect(definitions.WaitForCacheSync(ctx)).To(BeTrue())

	writer, err := metadata.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	objects, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())

	applier = NewApplier(Clients{
		Metadata: writer, Client: definitions, APIReader: live, Objects: trial.ClusterObjects{Client: objects},

		HasRelease: func(_ context.Context, release types.NamespacedName) (bool, error) {
			return release.Namespace == "apps", nil
		},
		HasProvider: func(_ context.Context, label string) (bool, error) { return label == "infrastructure-z", nil },
	})
})

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]ss.example.com
  annotations: {cert-manager.io/inject-ca-from: published/serving-cert}
  labels: {cluster.x-k8s.io/provider: infrastructure-x, published: "true"}
spec:
  group: example.com
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]ss, singular: %[1]s}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: webhook, namespace: published, path: /convert}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: "%[3]s"}}}
`

// file returns a CRD with one version and a conversion webhook.
func file(singular, kind, description string) chart.File {
	return chart.File{
		Name: "crds/" + singular + "s.example.com.yaml",
		Data: fmt.Appendf(nil, crd, singular, kind, description),
	}
}

// definitionOf returns a CRD without a webhook. All versions are served, and the first is the storage
// version.
func definitionOf(singular string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.APIVersion, d.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	d.Name = singular + "s.example.com"
	d.Labels = map[string]string{"cluster.x-k8s.io/provider": "infrastructure-x"}
	d.Spec.Group, d.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural:   singular + "s",
		Singular: singular,
		Kind:     singular,
		ListKind: singular + "List",
	}

	anything := true
	for i, name := range versions {
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", XPreserveUnknownFields: &anything},
				},
			}},
		})
	}

	return d
}

// fileOf returns a CRD as a file of a chart.
func fileOf(d *apiextensionsv1.CustomResourceDefinition) chart.File {
	GinkgoHelper()

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	Expect(err).NotTo(HaveOccurred())
	delete(content, "status")
	data, err := yaml.Marshal(content)
	Expect(err).NotTo(HaveOccurred())

	return chart.File{Name: "crds/" + d.Name + ".yaml", Data: data}
}

// wants returns a request of the provider x. Capstan has installed the provider y, too, and another program z.
func wants(files ...chart.File) Request {
	return Request{Label: "infrastructure-x", Namespace: "target", Version: "v1.1.0", Files: files,
		Includes: func(_ context.Context, label, _ string) (bool, error) { return label == "infrastructure-y", nil }}
}

// apply plans and applies a request.
func apply(ctx context.Context, r Request) ([]string, error) {
	plan, err := applier.Plan(ctx, r)
	if err != nil {
		return nil, err
	}

	return applier.Apply(ctx, plan)
}

func read(ctx context.Context, name string) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()

	object := &apiextensionsv1.CustomResourceDefinition{}
	Expect(live.Get(ctx, client.ObjectKey{Name: name}, object)).To(Succeed())

	return object
}

// edit changes a CRD, whose status the API server may write at the same time.
func edit(
	ctx context.Context, name string, change func(*apiextensionsv1.CustomResourceDefinition),
	options ...client.UpdateOption,
) {
	GinkgoHelper()

	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(bedtest.Edit(ctx, live, crd, change, options...)).To(Succeed())
}

// served waits until CRDs are served.
func served(ctx context.Context, files ...chart.File) {
	GinkgoHelper()
	Eventually(func() (bool, error) {
		found, err := applier.Served(ctx, files)
		return found.All, err
	}).Should(BeTrue())
}
