package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/test/fakesource"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("A web server", Ordered, ContinueOnFailure, func() {
	const token = "t0ken-of-the-server"

	var (
		w      *world
		server *fakesource.Server
	)

	// files returns the files of a release of a tiny provider.
	files := func(t tiny) map[string][]byte {
		return map[string][]byte{"metadata.yaml": []byte(t.metadata), "infrastructure-components.yaml": []byte(t.components)}
	}
	// publish publishes releases of a tiny provider, and returns its resource without the address of
	// the source.
	publish := func(ctx context.Context, name string, versions ...string) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		for _, version := range versions {
			server.Publish("owner/"+name, version, files(newTiny(name, version)))
		}

		t := newTiny(name, versions[0])
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(
			w.client.Create(
				ctx,
				&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "source"},
					StringData: map[string]string{"token": token, "ca.crt": string(server.CA())},
				},
			),
		).To(Succeed())

		p := t.resource()
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{SecretRef: &v1alpha2.LocalSecretReference{Name: "source"}}

		return p
	}

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		server = &fakesource.Server{Token: token, TLS: true}
		Expect(server.Start()).To(Succeed())
		DeferCleanup(func() { _ = server.Stop() })
	})

	It("with GitHub's paths offers the newest release, whose version is written into the spec", func(ctx SpecContext) {
		p := publish(ctx, "hub", "v1.0.0", "v1.0.1", "v1.1.0", "v1.2.0-rc.1")
		p.Spec.Version = "~1.0.0"
		p.Spec.FetchConfig.URL = server.URL() + "/owner/hub/releases/latest/infrastructure-components.yaml"
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.1"))
		Eventually(w.read(ctx, p)).Should(
			HaveField("Status.AvailableUpgrades", ConsistOf(v1alpha2.AvailableUpgrade{Version: "v1.1.0", Contract: "v1beta2"})))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "" })
		Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).
			Should(HaveField("Status.DesiredVersion", "v1.0.1"), "the pinned version is kept")
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.1"), HaveField("Spec.Version", "v1.0.1")))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), HaveField("Status.AvailableUpgrades", HaveExactElements(
			v1alpha2.AvailableUpgrade{
				Version:  "v1.0.1",
				Contract: "v1beta2",
			},
			v1alpha2.AvailableUpgrade{Version: "v1.1.0", Contract: "v1beta2"},
		))))
	})

	It("is asked for each file once, even if the operator or the server restarts", func(ctx SpecContext) {
		p := publish(ctx, "plain", "v1.0.0", "v1.1.0", "v1.2.0")
		p.Spec.FetchConfig.HTTP = server.URL() + "/plain/owner/plain"
		Expect(w.client.Create(ctx, p)).To(Succeed())

		to := func(version string) {
			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = version })
		}
		there := func() {
			GinkgoHelper()
			to("v1.0.0")
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
			to("v1.1.0")
			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		}
		there()

		By("restarting the operator, and changing the version twice")
		w.restart()
		there()
		Expect(
			server.Requests("/plain/owner/plain/"),
		).To(ConsistOf(HaveSuffix("v1.0.0/metadata.yaml"), HaveSuffix("v1.0.0/infrastructure-components.yaml"),
			HaveSuffix("v1.0.0/cluster-template.yaml"), HaveSuffix("v1.1.0/metadata.yaml"),
			HaveSuffix("v1.1.0/infrastructure-components.yaml"), HaveSuffix("v1.1.0/cluster-template.yaml")))

		By("stopping the server while the provider is installed, and restarting the operator")
		Expect(server.Stop()).To(Succeed())
		w.restart()
		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetAnnotations(map[string]string{"touched": "yes"}) })
		Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).Should(beReady("v1.1.0"))

		By("changing to versions that were fetched before")
		there()

		By("requesting a new look at the source, which is down")
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"})
		})
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.1.0"), HaveField("Status.LastHandledReconcileAt", "now")))

		By("changing to a version that was not fetched")
		to("v1.2.0")
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.ComponentsFetchErrorReason,
			server.URL()+"/plain/owner/plain/v1.2.0/metadata.yaml", "connection refused", "can be reached from here"))
		Expect(w.helm(ctx, "helm", "list", "-n", "plain")).To(
			ConsistOf(And(HaveField("AppVersion", "v1.1.0"), HaveField("Status", "deployed"))))

		By("starting the server again")
		Expect(server.Start()).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.2.0"))

		requests := server.Requests("/plain/owner/plain/")
		Expect(requests).To(HaveLen(9), "three files for each of three versions")
	})

	It("is asked again once it answers, if a request has met it unavailable", func(ctx SpecContext) {
		p := publish(ctx, "asked", "v1.0.0")
		p.Spec.FetchConfig.HTTP = server.URL() + "/plain/owner/asked"
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		edited := newTiny("asked", "v1.0.0")
		edited.components = strings.Replace(edited.components, ":v1.0.0", ":edited", 1)
		server.Replace("owner/asked", "v1.0.0", files(edited))

		Expect(server.Stop()).To(Succeed())
		update(ctx, w, p, request("now"))
		Eventually(w.events(ctx, p)).Should(ContainElement(HaveField("Reason", v1alpha2.ComponentsFetchErrorReason)))

		Expect(server.Start()).To(Succeed())
		Eventually(w.managerOf(ctx, "infrastructure-asked")).Should(
			HaveField("Spec.Template.Spec.Containers", ContainElement(HaveField("Image", HaveSuffix(":edited")))))
	})

	It(
		"is not needed for a chart that an older operator has stored in another format",
		func(ctx SpecContext) {
			p := publish(ctx, "older", "v1.0.0")
			p.Spec.FetchConfig.HTTP = server.URL() + "/plain/owner/older"
			t := newTiny("older", "v1.0.0")
			made, err := chartgen.Build(
				&bundle.Bundle{
					Provider:   source.Provider(v1alpha2.InfrastructureProviderType, "older"),
					Version:    t.version,
					Components: []byte(t.components),
					Metadata:   []byte(t.metadata),
				},
			)
			Expect(err).NotTo(HaveOccurred())

			old := withMetadata(made, func(m *chart.Metadata) {
				m.Annotations[chartgen.AnnotationChartgenVersion], m.Annotations[chartgen.AnnotationContentID] = "0", "0-older"
			})
			origin := p.Spec.FetchConfig.HTTP + "/v1.0.0/infrastructure-components.yaml"
			kept, err := store.New(old)
			Expect(err).NotTo(HaveOccurred())

			charts := &store.Store{Client: w.client, Namespace: harness.OperatorNamespace}
			Expect(charts.Put(ctx, kept, p.Namespace, origin, false)).To(Succeed())
			Expect(server.Stop()).To(Succeed())

			By("naming the chart in the status, as the older operator did")

			p.Spec.Suspend = true
			Expect(w.client.Create(ctx, p)).To(Succeed())
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.SuspendedReason))
			p.Status.Chart = &v1alpha2.ChartStatus{Version: old.Metadata.Version, Digest: kept.Digest}
			Expect(w.client.Status().Update(ctx, p)).To(Succeed())
			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Suspend = false })
			Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), HaveField("Status.Chart.Digest", kept.Digest)))

			By("requesting a new look when the server is back")
			Expect(server.Start()).To(Succeed())
			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"})
			})
			Eventually(w.read(ctx, p)).Should(
				And(
					beReady("v1.0.0"),
					HaveField("Status.Chart.Digest", Not(Equal(kept.Digest))),
					HaveField("Status.Release.Revision", 1), // the content is the same
				),
			)
		},
	)

	It(
		"that requires credentials or serves other bytes than the digest is reported in one condition",
		func(ctx SpecContext) {
			p := publish(ctx, "private", "v1.0.0")
			p.Spec.FetchConfig.HTTP = server.URL() + "/plain/owner/private"
			p.Spec.FetchConfig.SecretRef.Name = "authority"
			p.Spec.FetchConfig.Digest = "sha256:" + strings.Repeat("0", 64)

			Expect(w.client.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "private", Name: "authority"},
				StringData: map[string]string{"ca.crt": string(server.CA())},
			})).To(Succeed())
			Expect(w.client.Create(ctx, p)).To(Succeed())
			Eventually(w.read(ctx, p)).Should(notBeInstalled(v1alpha2.ComponentsFetchErrorReason,
				"answers 401 Unauthorized", "spec.fetchConfig.secretRef"))

			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.GetSpec().FetchConfig.SecretRef = &v1alpha2.LocalSecretReference{Name: "later"}
			})
			Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.SecretNotFoundReason, "Secret private/later"))
			Expect(
				w.client.Create(
					ctx,
					&corev1.Secret{
						ObjectMeta: metav1.ObjectMeta{Namespace: "private", Name: "later"},
						StringData: map[string]string{"token": token, "ca.crt": string(server.CA())},
					},
				),
			).To(Succeed())

			sum := sha256.Sum256([]byte(newTiny("private", "v1.0.0").components))
			Eventually(w.read(ctx, p)).Should(notBeInstalled(v1alpha2.InvalidComponentsReason,
				fmt.Sprintf("has the digest sha256:%x", sum), "spec.fetchConfig.digest"))
			nothingIsApplied(ctx, w, "private")

			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().FetchConfig.Digest = fmt.Sprintf("sha256:%x", sum) })
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		},
	)

	It("that cannot list versions requires an exact one", func(ctx SpecContext) {
		p := publish(ctx, "unlisted", "v1.0.0")
		p.Spec.Version, p.Spec.FetchConfig.HTTP = "", server.URL()+"/plain/owner/unlisted"
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeInstalled(v1alpha2.VersionNotFoundReason,
			"cannot list versions; set spec.version to an exact version"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("is not needed if a Secret or a directory holds the release", func(ctx SpecContext) {
		t := newTiny("in-a-secret", "v1.0.0")
		p := t.resource()
		secret := &corev1.Secret{ObjectMeta: t.configMap().ObjectMeta, StringData: t.configMap().Data}
		secret.Labels[v1alpha2.ConfigMapVersionLabel] = t.version
		variables := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "v1.5.0", Labels: t.labels()}}
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, secret)).To(Succeed())
		Expect(w.client.Create(ctx, variables)).To(Succeed())

		p.Spec.Version = ""
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})
})
