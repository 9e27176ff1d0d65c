package crds

import (
	"bytes"
	"context"
	"errors"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// applied is the entry of managedFields that applying a CRD leaves, as caches keep it.
var applied = metav1.ManagedFieldsEntry{
	Manager: v1alpha2.FieldOwner, Operation: metav1.ManagedFieldsOperationApply,
}

func TestDriftOf(t *testing.T) {
	versions := []string{"/spec/versions"}

	for name, c := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   []string
	}{
		"nothing": {change: func(*apiextensionsv1.CustomResourceDefinition) {}},
		"additions by others": {change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Labels["team"] = "a"
			crd.Annotations["note"] = "b"
			crd.Spec.Names.ShortNames = []string{"ap"}
			crd.Spec.Conversion.Webhook.ClientConfig.Service.Port = ptr.To[int32](443)
		}},
		"the caBundle": {change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("CA")
		}},
		"another owner of the same versions": {change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.ManagedFields = append(crd.ManagedFields, metav1.ManagedFieldsEntry{Manager: "clusterctl"})
		}},
		"versions of another program": {want: versions, change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.ManagedFields[0].Manager = "kubectl-edit"
			crd.ManagedFields[0].Operation = metav1.ManagedFieldsOperationUpdate
		}},
		"versions of an update of ours": {want: versions, change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.ManagedFields[0].Operation = metav1.ManagedFieldsOperationUpdate
		}},
		"the names": {want: []string{"/spec/names/listKind"}, change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Names.ListKind = "Apples"
		}},
		"the conversion": {
			want: []string{"/spec/conversion/strategy", "/spec/conversion/webhook/clientConfig/service/name",
				"/spec/conversion/webhook/clientConfig/service/namespace", "/spec/conversion/webhook/clientConfig/service/path",
				"/spec/conversion/webhook/conversionReviewVersions"},
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
			},
		},
		"labels and the certificate": {
			want: []string{"/metadata/annotations/cert-manager.io~1inject-ca-from",
				"/metadata/labels/cluster.x-k8s.io~1provider"},
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Labels = nil
				crd.Annotations[v1alpha2.InjectCAAnnotation] = "other/cert"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			definition := newDefinition(file("apple", "Apple", "first"), "target")
			facts, err := definition.parseFacts()
			g.Expect(err).NotTo(HaveOccurred())

			body, err := definition.body(Request{Version: "v1.0.0"}, nil)
			g.Expect(err).NotTo(HaveOccurred())

			live := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(yaml.Unmarshal(body, live)).To(Succeed())
			live.ManagedFields = []metav1.ManagedFieldsEntry{applied}
			c.change(live)

			g.Expect(facts.driftOf(live)).To(Equal(c.want))
		})
	}
}

// TestMistypedDefinition: what the API server would refuse is found before anything is applied.
func TestMistypedDefinition(t *testing.T) {
	g := NewWithT(t)

	f := file("apple", "Apple", "first")
	f.Data = bytes.ReplaceAll(f.Data, []byte("served: true"), []byte("served: \"true\""))

	_, err := newDefinition(f, "target").parseFacts()
	g.Expect(err).To(MatchError(ContainSubstring("spec.versions.served is a text")))
	g.Expect(errors.As(err, new(*RefusedError))).To(BeTrue())
}

var _ = Describe("A CRD that another program changes", Ordered, func() {
	crdFile := file("plum", "Plum", "first")

	drift := func(ctx context.Context) func(Gomega) []Drift {
		return func(g Gomega) []Drift {
			plan, err := applier.Plan(ctx, wants(crdFile))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(plan.HasChanges()).To(BeFalse())

			return plan.Drifted
		}
	}
	change := func(ctx context.Context, manager string, change func(*apiextensionsv1.CustomResourceDefinition)) {
		GinkgoHelper()

		edit(ctx, "plums.example.com", change, client.FieldOwner(manager))
	}

	BeforeAll(func(ctx SpecContext) {
		_, err := apply(ctx, wants(crdFile))
		Expect(err).NotTo(HaveOccurred())
		served(ctx, crdFile)
		Eventually(drift(ctx)).Should(BeEmpty())
	})

	It("is known without a request, and corrected", func(ctx SpecContext) {
		change(ctx, "kubectl-edit", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "other"
		})
		Eventually(drift(ctx)).Should(ConsistOf(And(
			HaveField("Name", "plums.example.com"), HaveField("Fields", []string{"/spec/versions"}))))

		plan, err := applier.Plan(ctx, wants(crdFile))
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.Correction("others.example.com").HasChanges()).To(BeFalse())
		Expect(applier.Apply(ctx, plan.Correction("plums.example.com"))).To(HaveLen(1))
		Expect(read(ctx, "plums.example.com").Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("first"))
		Eventually(drift(ctx)).Should(BeEmpty())
	})

	It("is as before if cert-manager injects its CA, or another program applies the same", func(ctx SpecContext) {
		change(ctx, "cert-manager-cainjector", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = config.CAData
			crd.Labels["team"] = "a"
		})

		generation := read(ctx, "plums.example.com").Generation

		Eventually(func(g Gomega) {
			seen, err := applier.getCached(ctx, "plums.example.com")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(seen.Generation).To(Equal(generation))
			g.Expect(seen.Labels).To(HaveKey("team"))
		}).Should(Succeed())
		Expect(drift(ctx)(NewGomega(func(message string, _ ...int) { Fail(message) }))).To(BeEmpty())
	})
})
