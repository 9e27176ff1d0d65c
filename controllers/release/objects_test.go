package release_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release"
)

var _ = Describe("The objects of a release", func() {
	var (
		namespace            string
		engine               *release.Engine
		first, second, third release.Spec
	)

	BeforeEach(func(ctx SpecContext) {
		namespace, engine = newNamespace(ctx), newEngine("one")
		first = specOf(namespace, "1.0.0", configMap("both", "1"), configMap("first", ""))
		second = specOf(namespace, "1.1.0", configMap("both", "2"), configMap("left", ""), deployment("manager", "1"))
		third = specOf(namespace, "1.2.0", configMap("both", "3"), configMap("third", ""))
		kubectlApply(ctx, namespace, configMap("other", ""))
	})

	forget := func(ctx context.Context, revision int) {
		GinkgoHelper()
		Expect(client.CoreV1().Secrets(namespace).Delete(ctx, secretOf(revision), metav1.DeleteOptions{})).To(Succeed())
	}
	inventoryIs := func(names ...string) {
		GinkgoHelper()

		found := []string{}
		for _, key := range inventoryOf(releaseIn(namespace)) {
			found = append(found, key.Name)
		}

		Expect(found).To(ConsistOf(names))
	}
	configMapKey := func(name string) object.Key {
		return object.Key{
			GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: namespace, Name: name,
		}
	}

	It("are those of the revision, and of attempts before it, until they are deleted", func(ctx SpecContext) {
		mustApply(ctx, engine, first)
		inventoryIs("both", "first")

		_, err := applySpec(ctx, during(&outage{method: http.MethodPatch, path: "/configmaps/both"}, lasting), second)
		expectError[*apply.UnavailableError](err)
		inventoryIs("both", "first", "left", "manager")

		mustApply(ctx, engine, third)
		inventoryIs("both", "third")
		Expect(configMaps(ctx, namespace)).To(ConsistOf("both", "third", "other"))
	})

	It("are deleted by the next revision although their record is gone", func(ctx SpecContext) {
		mustApply(ctx, engine, first)
		mustApply(ctx, engine, second)
		forget(ctx, 2)

		mustApply(ctx, engine, third)
		Expect(configMaps(ctx, namespace)).To(ConsistOf("both", "third", "other"))
		Expect(run(ctx, "kubectl", "get", "deployments", "-n", namespace)).To(ContainSubstring("No resources found"))
	})

	It("are deleted by a rollback although their record is gone", func(ctx SpecContext) {
		mustApply(ctx, engine, first)
		mustApply(ctx, engine, second)
		_, err := applySpec(ctx, during(&outage{method: http.MethodPatch, path: "/configmaps/both"}, lasting), third)
		expectError[*apply.UnavailableError](err)
		forget(ctx, 2)

		options := release.RollbackOptions{Target: confirmed(namespace, 1)}
		Expect(rollback(ctx, engine, first.Release, options, observe(ctx, engine, first))).Error().NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("both", "first", "other"))
		inventoryIs("both", "first")
	})

	It("are deleted by an uninstall although all records are gone", func(ctx SpecContext) {
		mustApply(ctx, engine, first)
		mustApply(ctx, engine, second)
		forget(ctx, 1)
		forget(ctx, 2)

		Expect(engine.Remains(ctx, releaseIn(namespace), inventoryOf(releaseIn(namespace)))).To(BeTrue())

		Expect(uninstall(ctx, engine, releaseIn(namespace), 0, false)).
			Error().NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("other"))
		Expect(engine.Remains(ctx, releaseIn(namespace), inventoryOf(releaseIn(namespace)))).To(BeFalse())
	})

	It("are none that do not bear its marks, whatever its inventory says", func(ctx SpecContext) {
		mustApply(ctx, engine, first)
		run(ctx, "kubectl", "annotate", "--overwrite", "configmap", "first", "-n", namespace,
			"meta.helm.sh/release-name=another")
		setInventory(releaseIn(namespace), object.Union(
			inventoryOf(releaseIn(namespace)), []object.Key{configMapKey("other"), configMapKey("missing")}))

		mustApply(ctx, engine, third)
		Expect(configMaps(ctx, namespace)).To(ConsistOf("both", "third", "first", "other"))
		inventoryIs("both", "third")

		setInventory(releaseIn(namespace), []object.Key{configMapKey("other"), configMapKey("first")})
		Expect(uninstall(ctx, engine, releaseIn(namespace), 2, false)).
			Error().NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(ContainElements("first", "other"))
	})

	It("are deleted in another version of their kind if theirs is not served any more", func(ctx SpecContext) {
		mustApply(ctx, engine, first)

		known := inventoryOf(releaseIn(namespace))
		for i := range known {
			known[i].Version = "v0"
		}

		setInventory(releaseIn(namespace), known)

		mustApply(ctx, engine, third)
		Expect(configMaps(ctx, namespace)).To(ConsistOf("both", "third", "other"))
	})

	It("can be too large for etcd together with their managed fields", func(ctx SpecContext) {
		many := func(version string) release.Spec {
			first := strings.Index(webhooks, "- name")
			configuration := strings.Replace(webhooks[:first], "metadata:", "metadata:\n  labels: {version: "+version+"}", 1)

			for i := range 519 {
				configuration += strings.Replace(webhooks[first:], "default", fmt.Sprintf("default-%d", i), 1)
			}

			return specOf(namespace, version, configuration)
		}

		mustApply(ctx, engine, many("1.0.0"))

		configurations := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
		configuration, err := configurations.Get(ctx, namespace+"-webhooks", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		for i := range configuration.Webhooks {
			configuration.Webhooks[i].ClientConfig.CABundle = bytes.Repeat([]byte("x"), 2750)
		}

		configuration, err = configurations.Update(ctx, configuration, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(configuration.ManagedFields).To(BeEmpty(), "the API server stores them without")

		mustApply(ctx, engine, many("1.1.0"))

		configuration, err = configurations.Get(ctx, configuration.Name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(configuration.Labels).To(HaveKeyWithValue("version", "1.1.0"))
		Expect(configuration.Webhooks).To(HaveEach(HaveField("ClientConfig.CABundle", HaveLen(2750))))
	})

	It("can be so when they are created, and even more so when they are changed then", func(ctx SpecContext) {
		const keys = 18000

		for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
			many := &strings.Builder{}
			many.WriteString(configMap("many", version))

			for i := range keys {
				fmt.Fprintf(many, "  a-name-of-forty-characters-%013d: x\n", i)
			}

			mustApply(ctx, engine, specOf(namespace, version, many.String()))

			stored := getConfigMap(ctx, namespace, "many")
			Expect(stored.Data).To(HaveLen(keys + 1))
			Expect(stored.Data).To(HaveKeyWithValue("key", version))
			Expect(stored.ManagedFields).To(BeEmpty(), "the API server stores them without")
		}
	})

	It("can be what was exported from a cluster", func(ctx SpecContext) {
		const exported = `
  creationTimestamp: "2025-02-03T04:05:06Z"
  generation: 3
  managedFields:
  - {apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:key": {}}}, manager: kubectl, operation: Update}
  ownerReferences:
  - {apiVersion: apps/v1, kind: Deployment, name: elsewhere, uid: 9d1d4c3e-0000-4000-8000-000000000001}
  resourceVersion: "48151623"
  uid: 2b0f7a52-77ab-4a0e-93a5-3f1b7f6a0c11
`

		objects := func(data string) []string {
			revisions := "\n  annotations: {deployment.kubernetes.io/revision: \"7\"}"

			return []string{
				strings.Replace(configMap("config", data), "config\n", "config"+exported, 1),
				strings.Replace(service, "webhook\n", "webhook"+exported, 1) + "status: {loadBalancer: {}}\n",
				strings.Replace(deployment("manager", "1"), "name: manager\n", "name: manager"+revisions+exported, 1) +
					"status: {availableReplicas: 1, observedGeneration: 7}\n",
			}
		}

		mustApply(ctx, engine, specOf(namespace, "1.0.0", objects("1")...))
		Expect(getConfigMap(ctx, namespace, "config").OwnerReferences).To(BeEmpty(), "it would be deleted with its owner")
		Eventually(func() string {
			return getDeployment(ctx, namespace, "manager").Annotations["deployment.kubernetes.io/revision"]
		}).Should(Equal("1"))
		Expect(compare(ctx, engine, namespace).Differences).To(BeEmpty())

		mustApply(ctx, engine, specOf(namespace, "1.1.0", objects("2")...))
		run(ctx, "helm", "rollback", name, "1", "-n", namespace)
		Expect(getConfigMap(ctx, namespace, "config").Data).To(HaveKeyWithValue("key", "1"))
	})

	It("can be given away, and have no marks then", func(ctx SpecContext) {
		mustApply(ctx, engine, first)
		Expect(engine.Dissolve(ctx, releaseIn(namespace), inventoryOf(releaseIn(namespace)))).To(Succeed())
		Expect(history(ctx, namespace)).To(BeEmpty())
		Expect(getConfigMap(ctx, namespace, "first").ObjectMeta).To(And(
			HaveField("Labels", BeEmpty()), HaveField("Annotations", BeEmpty())))
	})
})
