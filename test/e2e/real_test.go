package e2e

import (
	"encoding/base64"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// maxReleaseSecret is the maximum size of a release's Secret in these scenarios. Kubernetes allows
// 1 MiB, and ten revisions are kept.
const maxReleaseSecret = 120 << 10

var _ = Describe("Real providers", Ordered, func() {
	var (
		realProviders string
		w             *world
		providers     []v1alpha2.Provider
	)

	BeforeAll(func(ctx SpecContext) {
		realProviders = testproviders.Folder(GinkgoT())

		w = newWorld(ctx)
		w.start()
	})

	It("become ready when all five are created at once", func(ctx SpecContext) {
		for _, wanted := range harness.Standard {
			providers = append(providers, w.install(ctx, realProviders, wanted))
		}

		for i, p := range providers {
			Eventually(w.read(ctx, p)).Should(beReady(harness.Standard[i].Version))
		}
	})

	It("are releases that helm lists as deployed", func(ctx SpecContext) {
		releases := w.helm(ctx, "helm", "list", "-A")
		Expect(releases).To(HaveLen(len(harness.Standard)))

		for _, wanted := range harness.Standard {
			Expect(releases).To(ContainElement(And(
				HaveField("Name", wanted.Label), HaveField("Namespace", wanted.Label+"-system"), HaveField("Status", "deployed"),
				HaveField("Chart", wanted.Label+"-"+wanted.Version[1:]), HaveField("AppVersion", wanted.Version),
			)))
		}
	})

	It(
		"wait for the credentials of aws before anything of it is applied",
		func(ctx SpecContext) {
			aws := providers[len(providers)-1]
			Expect(w.client.Delete(ctx, aws)).To(Succeed())
			Eventually(gone(ctx, w, aws)).Should(BeTrue())
			credentials := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: aws.GetNamespace(), Name: "infrastructure-aws-variables"},
			}
			Expect(w.client.Get(ctx, client.ObjectKeyFromObject(credentials), credentials)).To(Succeed())
			data := credentials.Data
			credentials.Data = nil
			Expect(w.client.Update(ctx, credentials)).To(Succeed())

			release, err := harness.Load(ctx, realProviders, harness.Standard[len(harness.Standard)-1])
			Expect(err).NotTo(HaveOccurred())

			aws = release.Resource()
			Expect(w.client.Create(ctx, aws)).To(Succeed())
			Eventually(w.read(ctx, aws)).Should(notBeReady(v1alpha2.MissingVariablesReason, "AWS_B64ENCODED_CREDENTIALS"))

			deployments := &appsv1.DeploymentList{}
			Expect(w.client.List(ctx, deployments, client.InNamespace(aws.GetNamespace()))).To(Succeed())
			Expect(deployments.Items).To(BeEmpty())

			credentials.Data = data
			Expect(w.client.Update(ctx, credentials)).To(Succeed())
			update(ctx, w, aws, func(p v1alpha2.Provider) { p.SetAnnotations(map[string]string{"touched": "yes"}) })
			Eventually(w.read(ctx, aws)).Should(beReady("v2.11.1"))
		},
	)

	It("never expose a credential", func(ctx SpecContext) {
		secret := harness.AWSVariables["AWS_B64ENCODED_CREDENTIALS"]
		plain, err := base64.StdEncoding.DecodeString(secret)
		Expect(err).NotTo(HaveOccurred())
		log, err := os.ReadFile(w.log)
		Expect(err).NotTo(HaveOccurred())

		for _, place := range []string{
			string(log),
			w.run(ctx, "kubectl", "get", "capstan", "-A", "-o", "yaml"),
			w.run(ctx, "kubectl", "get", "events", "-A", "-o", "yaml"),
			w.run(ctx,
				"kubectl", "get", "configmaps", "-A", "-l", "app.kubernetes.io/component=capstan-chart", "-o", "yaml"),
		} {
			Expect(place).NotTo(Or(ContainSubstring(secret), ContainSubstring(string(plain))))
		}
	})

	It("fit into Helm's storage, including the largest", func(ctx SpecContext) {
		azure := w.install(ctx, realProviders, harness.Wanted{Label: "infrastructure-azure", Version: "v1.26.0"})
		Eventually(w.read(ctx, azure)).Should(beReady("v1.26.0"))

		secrets := &corev1.SecretList{}
		Expect(w.client.List(ctx, secrets, client.MatchingLabels{"owner": "helm"})).To(Succeed())
		Expect(len(secrets.Items)).To(BeNumerically(">=", len(harness.Standard)+1))

		for _, secret := range secrets.Items {
			Expect(len(secret.Data["release"])).To(BeNumerically("<", maxReleaseSecret), secret.Name)
		}
	})
})
