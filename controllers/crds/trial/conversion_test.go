package trial_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/crds/trial"
)

// withDeadWebhook returns the CRD of definition(nil, …) with a newer storage version v2, and a conversion webhook that
// does not answer. Fields are those of spec in each version.
func withDeadWebhook(v1, v2 string) *crd {
	d := definition([]change{{name: "text", new: v1}}, true)
	newer := definition([]change{{name: "text", new: v2}}, true).Spec.Versions[0]
	newer.Name = "v2"
	d.Spec.Versions[0].Storage = false
	d.Spec.Versions = append(d.Spec.Versions, newer)
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")},
		},
	}

	return d
}

var _ = Describe("A trial, with a conversion webhook that does not answer", func() {
	const text, short = "{type: string}", "{type: string, maxLength: 3}"

	// changed makes v2 the storage version of objects that are stored in v1, and returns once no list has them any more.
	changed := func(ctx context.Context, desired *crd) {
		GinkgoHelper()
		Expect(replace(ctx, desired)).To(Succeed())
		Eventually(ctx, func() error { return list(ctx, "v2") }).WithTimeout(time.Minute).
			Should(MatchError(ContainSubstring("conversion webhook for ")))
	}

	BeforeEach(func(ctx SpecContext) {
		install(ctx, definition([]change{{name: "text", old: text}}, false))
		create(ctx, sample("a", "text", "long"))
	})

	It("reads objects in the version that all of them are stored in", limit, func(ctx SpecContext) {
		changed(ctx, withDeadWebhook(text, text))

		report := check(ctx, withDeadWebhook(text, short))
		Expect(report.Findings).To(BeEmpty(), "a webhook is trusted to convert all fields: %s", report.Message())

		report = check(ctx, withDeadWebhook(short, short))
		Expect(report.Untried()).To(BeFalse())
		Expect(report.Message()).To(ContainSubstring("v1 spec.text: the value is no longer valid"))
	})

	It("refuses the change if there is none, and names ways out that work", limit, func(ctx SpecContext) {
		changed(ctx, withDeadWebhook(text, text))

		o := sample("b", "text", "new")
		o.SetAPIVersion(samples.Group + "/v2")
		_, err := client.Resource(samples.GroupResource().WithVersion("v2")).Namespace("default").
			Create(ctx, o, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred(), "it needs no conversion")

		desired := withDeadWebhook(text, short)
		Expect(check(ctx, desired).Untried()).To(BeTrue())

		findings, err := trial.Run(ctx, trial.Change{Live: live(ctx, desired.Name), Desired: desired},
			trial.ClusterObjects{Client: client})
		Expect(err).NotTo(HaveOccurred())
		Expect(findings).To(ConsistOf(And(HaveField("CRD", desired.Name), HaveField("Unread", true),
			HaveField("Message", MatchRegexp(`^its objects cannot be read: .*conversion webhook for \S+/v1, Kind=\w+ failed: `+
				`Post "https://127\.0\.0\.1:1/convert`)))))

		report := trial.NewReport(findings, []string{desired.Name})
		Expect(report.Refused()).To(BeFalse())
		Expect(report.Allowed()).To(ConsistOf(HaveSuffix("; allowed by the annotation capstan.dev/allow-unsafe-crd")))

		command := regexp.MustCompile(`kubectl patch customresourcedefinition (\S+) --type=merge -p '(.*)'$`).
			FindStringSubmatch(trial.NewReport(findings, nil).Message())
		Expect(command).To(HaveLen(3), trial.NewReport(findings, nil).Message())
		Expect(json.Valid([]byte(command[2]))).To(BeTrue())
		_, err = definitions.ApiextensionsV1().CustomResourceDefinitions().Patch(
			ctx, command[1], types.MergePatchType, []byte(command[2]), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() error { return list(ctx, "v2") }).WithTimeout(time.Minute).Should(Succeed())

		report = check(ctx, desired)
		Expect(strings.Join(affected(report), " ")).To(Equal("a"), report.Message())
	})
})

var _ = Describe("Objects that are stored in a version", func() {
	It("are not those that were converted to it before their webhook ended", limit, func(ctx SpecContext) {
		server := httptest.NewTLSServer(http.HandlerFunc(convert))
		DeferCleanup(server.Close)

		converted := withDeadWebhook("{type: string}", "{type: string}")
		converted.Spec.Conversion.Webhook.ClientConfig.URL = &server.URL
		converted.Spec.Conversion.Webhook.ClientConfig.CABundle = pem.EncodeToMemory(
			&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		install(ctx, converted)

		o := sample("new", "text", "new")
		o.SetAPIVersion(samples.Group + "/v2")
		_, err := client.Resource(samples.GroupResource().WithVersion("v2")).Namespace("default").
			Create(ctx, o, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega) { // in the cache of v1
			found, err := client.Resource(samples).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Items).To(HaveLen(1))
		}).WithTimeout(time.Minute).Should(Succeed())

		server.Close()

		objects := trial.ClusterObjects{Client: client}
		for _, err := range objects.All(ctx, samples) {
			Expect(err).NotTo(HaveOccurred())
		}

		for _, err := range objects.Stored(ctx, samples) {
			Expect(err).To(MatchError(ContainSubstring("conversion webhook for " + samples.Group + "/v2")))
		}
	})
})

// convert converts objects by their apiVersion alone.
func convert(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	review.Response = &apiextensionsv1.ConversionResponse{
		UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess},
	}

	for _, o := range review.Request.Objects {
		converted := &unstructured.Unstructured{}
		if err := converted.UnmarshalJSON(o.Raw); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}

		converted.SetAPIVersion(review.Request.DesiredAPIVersion)
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: converted})
	}

	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

// list lists samples in a version. Without a limit the API server asks to wait, since its cache has none yet.
func list(ctx context.Context, version string) error {
	_, err := client.Resource(samples.GroupResource().WithVersion(version)).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}
