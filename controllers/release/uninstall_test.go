package release_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/release"
)

var _ = Describe("Uninstalling", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		engine = newEngine("one")
	})

	It("removes all objects and the history, as often as it is asked to", func(ctx SpecContext) {
		mustApply(
			ctx,
			engine,
			desired(namespace, chartOf("1.0.0", configMap("config", ""), serviceAccount("manager"), clusterRole,
				clusterRoleBinding, service, deployment("manager", "1")), nil),
		)
		uninstalled(ctx, engine, namespace)
		_, err := client.RbacV1().ClusterRoles().Get(ctx, namespace+"-role", metav1.GetOptions{})
		Expect(err).To(beGone())
		_, err = client.RbacV1().ClusterRoleBindings().Get(ctx, namespace+"-binding", metav1.GetOptions{})
		Expect(err).To(beGone())
		uninstalled(ctx, engine, namespace)
	})

	It(
		"is not held up by objects or kinds that are gone, and finds those that a failed revision brought",
		func(ctx SpecContext) {
			kubectlApply(ctx, namespace, crd("ephemerals"))
			run(ctx, "kubectl", "wait", "--for=condition=Established", "crd/ephemerals.release.test")
			mustApply(
				ctx,
				engine,
				desired(
					namespace,
					chartOf("1.0.0", configMap("config", ""), configMap("gone", ""), custom("ephemerals", "x")),
					nil,
				),
			)
			_, err := apply(
				ctx,
				engine,
				desired(namespace, chartOf("1.1.0", configMap("brought", ""), deployment("manager", "-1")), nil),
			)
			Expect(err).To(HaveOccurred())
			Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "gone", "brought"))

			run(ctx, "kubectl", "delete", "crd", "ephemerals.release.test")
			Expect(client.CoreV1().ConfigMaps(namespace).Delete(ctx, "gone", metav1.DeleteOptions{})).To(Succeed())
			uninstalled(ctx, newEngine("another"), namespace)
		},
	)

	It("leaves CRDs, what is to be kept, and what has come to belong to another release", func(ctx SpecContext) {
		kept := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  annotations: {helm.sh/resource-policy: keep}\n"
		mustApply(
			ctx,
			engine,
			desired(namespace, chartOf("1.0.0", crd("leftovers"), kept, configMap("moved", ""), configMap("config", "")), nil),
		)
		run(
			ctx,
			"kubectl",
			"annotate",
			"--overwrite",
			"configmap",
			"moved",
			"-n",
			namespace,
			"meta.helm.sh/release-name=another",
		)

		result, err := engine.Uninstall(ctx, namespace, name)
		Expect(err).NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "moved"))
		Expect(result.Pruned).To(ConsistOf(HaveField("Name", "config")))
		Expect(result.Left).To(ConsistOf(HaveField("Name", "moved"), HaveField("Name", "leftovers.release.test")))
		run(ctx, "kubectl", "get", "crd", "leftovers.release.test")
	})

	It(
		"is not held up by the release's own webhooks, in which upgrades have left alone what others put there",
		func(ctx SpecContext) {
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
			mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", configMap("config", ""), service, webhook("5")), nil))

			const ca = "Y2E="
			run(ctx, "kubectl", "patch", "validatingwebhookconfiguration", namespace+"-webhook", "--type=json",
				"-p", `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"`+ca+`"}]`)
			mustApply(ctx, engine, desired(namespace, chartOf("1.1.0", configMap("config", ""), service, webhook("6")), nil))
			Expect(run(ctx, "kubectl", "get", "validatingwebhookconfiguration", namespace+"-webhook", "-o",
				"jsonpath={.webhooks[0].timeoutSeconds} {.webhooks[0].clientConfig.caBundle}")).To(Equal("6 " + ca))
			Eventually(func() error { // until the API server heeds the webhook
				return client.CoreV1().
					ConfigMaps(namespace).
					Delete(ctx, "config", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
			}).ShouldNot(Succeed())

			Eventually(
				func() error { _, err := engine.Uninstall(ctx, namespace, name); return err },
			).WithTimeout(10 * time.Second).
				Should(Succeed())
			Expect(configMaps(ctx, namespace)).To(BeEmpty())
		},
	)

	It("goes on where a kind has vanished while a release that has it is upgraded", func(ctx SpecContext) {
		kubectlApply(ctx, namespace, crd("vanishers"))
		run(ctx, "kubectl", "wait", "--for=condition=Established", "crd/vanishers.release.test")
		mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", configMap("config", ""), custom("vanishers", "x")), nil))
		run(ctx, "kubectl", "delete", "crd", "vanishers.release.test")
		mustApply(ctx, newEngine("another"), desired(namespace, chartOf("1.1.0", configMap("config", "")), nil))
	})
})
