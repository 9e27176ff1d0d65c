package release_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

var _ = Describe("An uninstall", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		engine = newEngine("one")
	})

	It("deletes all objects and the history, and can be repeated", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", ""), serviceAccount("manager"), clusterRole,
			clusterRoleBinding, service, deployment("manager", "1")))
		expectUninstall(ctx, engine, namespace)
		_, err := client.RbacV1().ClusterRoles().Get(ctx, namespace+"-role", metav1.GetOptions{})
		Expect(err).To(beNotFound())
		_, err = client.RbacV1().ClusterRoleBindings().Get(ctx, namespace+"-binding", metav1.GetOptions{})
		Expect(err).To(beNotFound())
		expectUninstall(ctx, engine, namespace)
	})

	It("is what helm shows until it is complete", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "")))

		o := &outage{method: http.MethodDelete, path: "/configmaps/config"}
		interrupted := during(o, lasting)
		_, err := uninstall(ctx, interrupted, releaseIn(namespace), 1, false)
		Expect(err).To(HaveOccurred())
		Expect(run(ctx, "helm", "status", name, "-n", namespace)).To(ContainSubstring("STATUS: uninstalling"))

		o.over()
		expectUninstall(ctx, interrupted, namespace)
	})

	It("ignores missing objects and kinds, and deletes those of failed revisions", func(ctx SpecContext) {
		establishCRD(ctx, namespace, "ephemerals")
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", ""), configMap("gone", ""),
			custom("ephemerals", "x")))
		rejectIngresses(ctx, namespace)
		_, err := applySpec(ctx, engine, specOf(namespace, "1.1.0", configMap("brought", ""), rejected))
		Expect(err).To(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "gone", "brought"))

		run(ctx, "kubectl", "delete", "crd", "ephemerals.release.test")
		Expect(client.CoreV1().ConfigMaps(namespace).Delete(ctx, "gone", metav1.DeleteOptions{})).To(Succeed())
		expectUninstall(ctx, newEngine("another"), namespace)
	})

	It("keeps CRDs, annotated objects and those of other releases", func(ctx SpecContext) {
		kept := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  annotations: {helm.sh/resource-policy: keep}\n"
		mustApply(ctx, engine, specOf(namespace, "1.0.0", crd("leftovers"), kept, configMap("moved", ""),
			configMap("config", "")))
		run(ctx, "kubectl", "annotate", "--overwrite", "configmap", "moved", "-n", namespace,
			"meta.helm.sh/release-name=another")

		result, err := uninstall(ctx, engine, releaseIn(namespace), 1, false)
		Expect(err).NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "moved"))
		Expect(result.With(apply.Deleted)).To(ConsistOf(HaveField("Object.Name", "config")))
		Expect(result.With(apply.Left)).To(ConsistOf(
			HaveField("Object.Name", "kept"), HaveField("Object.Name", "leftovers.release.test")))
		run(ctx, "kubectl", "get", "crd", "leftovers.release.test")
	})

	It("is not blocked by the release's own webhooks, whose injected CA upgrades kept", func(ctx SpecContext) {
		webhook := func(timeout string) string {
			return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: {{ .Release.Namespace }}-webhook
webhooks:
- name: guard.release.test
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: ` + timeout + `
  clientConfig: {service: {name: webhook, namespace: {{ .Release.Namespace }}, path: /}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace }}}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}]
`
		}
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", ""), service, webhook("5")))

		const ca = "Y2E="
		run(ctx, "kubectl", "patch", "validatingwebhookconfiguration", namespace+"-webhook", "--type=json", "-p",
			`[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"`+ca+`"}]`)
		mustApply(ctx, engine, specOf(namespace, "1.1.0", configMap("config", ""), service, webhook("6")))
		Expect(run(ctx, "kubectl", "get", "validatingwebhookconfiguration", namespace+"-webhook", "-o",
			"jsonpath={.webhooks[0].timeoutSeconds} {.webhooks[0].clientConfig.caBundle}")).To(Equal("6 " + ca))
		Eventually(func() error { // until the API server calls the webhook
			return client.CoreV1().
				ConfigMaps(namespace).
				Delete(ctx, "config", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}).ShouldNot(Succeed())

		Eventually(func() error {
			_, err := uninstall(ctx, engine, releaseIn(namespace), 1, false)
			return err
		}).Should(Succeed())
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
	})

	It("deletes nothing if another program has made a revision since, whose objects are not known", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "")))
		key := releaseIn(namespace)
		observed, _ := accepted(ctx, engine, key).Newest()

		run(ctx, "helm", "rollback", key.Name, "1", "-n", namespace)
		_, err := engine.Uninstall(ctx, key, memoryOf(ctx, engine, key), release.UninstallOptions{Newest: observed})
		Expect(err).To(MatchError(storage.ErrChanged))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
	})

	It("of a kind does not prevent the upgrade of a release that has it", func(ctx SpecContext) {
		establishCRD(ctx, namespace, "vanishers")
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", ""), custom("vanishers", "x")))
		run(ctx, "kubectl", "delete", "crd", "vanishers.release.test")
		mustApply(ctx, newEngine("another"), specOf(namespace, "1.1.0", configMap("config", "")))
	})
})
