package release_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/test/bed"
)

var _ = Describe("A release", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	It("is installed, is in sync afterwards, and both helm programs know it", func(ctx SpecContext) {
		engine := newEngine("one")
		d := desired(
			namespace,
			chartOf(
				"1.2.3",
				configMap("config", "{{ .Values.variables.LEVEL }}"),
				serviceAccount("manager"),
				clusterRole,
				clusterRoleBinding,
				service,
				deployment("manager", "2"),
			),
			map[string]any{"variables": map[string]any{"LEVEL": "debug"}},
		)
		Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.Absent))

		Expect(mustApply(ctx, engine, d).Revision).To(Equal(1))

		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "config", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(cm.Data).To(HaveKeyWithValue("key", "debug"))
		Expect(cm.ManagedFields[0].Manager).To(Equal("capstan"))

		state := stateOf(ctx, engine, d)
		Expect(state.Condition).To(Equal(release.InSync))
		Expect(state.Revision).To(HaveField("Holder", "one"))
		Expect(state.Revision).To(HaveField("Version", "v1.2.3"))
		Expect(state.Revision).To(HaveField("ChartDigest", d.ChartDigest))
		Expect(state.Revision.Created).To(BeTemporally("~", time.Now(), time.Minute))

		for _, helm := range []string{"helm", "helm4"} {
			Expect(
				run(ctx, helm, "list", "-n", namespace),
			).To(MatchRegexp(name + `\s.*deployed.*` + name + `-1\.2\.3\s+v1\.2\.3`))
			Expect(run(ctx, helm, "history", name, "-n", namespace)).To(ContainSubstring("Install complete"))
			Expect(run(ctx, helm, "get", "values", name, "-n", namespace)).To(ContainSubstring("LEVEL: debug"))
			Expect(run(ctx, helm, "get", "manifest", name, "-n", namespace)).To(ContainSubstring("kind: Deployment"))
		}
	})

	It("costs few requests to install, and one to find in sync", func(ctx SpecContext) {
		config, err := cluster.ConfigFor("counted-" + namespace)
		Expect(err).NotTo(HaveOccurred())

		engine := newEngine("one", func(c *rest.Config) { *c = *config })
		requests := func() []bed.Request {
			all, err := cluster.Requests(func(r bed.Request) bool { return r.User == "counted-"+namespace })
			Expect(err).NotTo(HaveOccurred())

			return all
		}
		d := desired(
			namespace,
			chartOf(
				"1.0.0",
				configMap("a", ""),
				configMap("b", ""),
				configMap("c", ""),
				configMap("d", ""),
				configMap(
					"e",
					"",
				),
				configMap("f", ""),
				configMap("g", ""),
				serviceAccount("manager"),
				clusterRole,
				clusterRoleBinding,
				service,
				deployment("manager", "1"),
			),
			nil,
		)

		const objects = 12

		_, err = engine.Digest(d)
		Expect(err).NotTo(HaveOccurred()) // discovers the API, once for all releases

		before := len(requests())

		mustApply(ctx, engine, d)

		const lists, records = 2, 2
		Eventually(requests).Should(HaveLen(before + 2*objects + lists + records))

		Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.InSync))
		Eventually(requests).Should(HaveLen(before + 2*objects + lists + records + 1))
		all := requests()
		last := all[len(all)-1]
		Expect(last.Verb + " " + last.Resource).To(Equal("list secrets"))
		Expect(bed.Count(all, func(r bed.Request) string { return r.Verb + " " + r.Resource })).NotTo(HaveKey("get secrets"))
	})

	It("is upgraded in place: what changed is patched, what is no longer in the chart is pruned", func(ctx SpecContext) {
		engine := newEngine("one")
		mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", configMap("kept", "old"), configMap("dropped", ""),
			clusterRole, serviceAccount("manager"), deployment("manager", "1")), nil))
		before, err := client.AppsV1().Deployments(namespace).Get(ctx, "manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		d := desired(namespace, chartOf("1.1.0", configMap("kept", "new"), configMap("added", ""),
			serviceAccount("manager"), deployment("manager", "3")), nil)
		Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.OutOfSync))
		result := mustApply(ctx, engine, d)

		Expect(result.Revision).To(Equal(2))
		Expect(result.Pruned).To(HaveLen(2))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "added"))
		_, err = client.RbacV1().ClusterRoles().Get(ctx, namespace+"-role", metav1.GetOptions{})
		Expect(err).To(beGone())
		after, err := client.AppsV1().Deployments(namespace).Get(ctx, "manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed"}))
	})

	It(
		"leaves alone what other programs have added to its objects, and takes out what it had set itself",
		func(ctx SpecContext) {
			engine := newEngine("one")
			withData := func(data string) string {
				return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shared\ndata: {" + data + "}\n"
			}
			mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", withData("ours: a, former: b")), nil))
			cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "shared", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())

			cm.Data["theirs"] = "c"
			_, err = client.CoreV1().ConfigMaps(namespace).Update(ctx, cm, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())

			mustApply(ctx, engine, desired(namespace, chartOf("1.1.0", withData("ours: a")), nil))

			cm, err = client.CoreV1().ConfigMaps(namespace).Get(ctx, "shared", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(cm.Data).To(Equal(map[string]string{"ours": "a", "theirs": "c"}))
		},
	)

	It("keeps no more revisions than it should", func(ctx SpecContext) {
		engine := newEngine("one")

		for _, version := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"} {
			d := desired(namespace, chartOf(version, configMap("config", version)), nil)
			d.HistoryLimit = 3
			mustApply(ctx, engine, d)
		}

		Expect(history(ctx, namespace)).To(Equal([]string{"3 superseded", "4 superseded", "5 deployed"}))
	})

	It("is read once for as long as its record does not change", func(ctx SpecContext) {
		engine := newEngine("one")
		d := desired(namespace, chartOf("1.0.0", configMap("config", ""), clusterRole), nil)
		mustApply(ctx, engine, d)
		revision := stateOf(ctx, engine, d).Revision

		record, err := engine.Read(ctx, namespace, name, revision)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.AppVersion).To(Equal("v1.0.0"))
		Expect(record.Description).To(Equal("Install complete"))

		var objects []string
		for _, o := range record.Objects {
			objects = append(objects, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
		}

		Expect(objects).To(ConsistOf("ConfigMap "+namespace+"/config", "ClusterRole /"+namespace+"-role"))
		Expect(engine.Read(ctx, namespace, name, revision)).To(BeIdenticalTo(record))
	})

	It("brings custom resources back to what they should be", func(ctx SpecContext) {
		engine := newEngine("one")

		kubectlApply(ctx, namespace, crd("drifters"))
		run(ctx, "kubectl", "wait", "--for=condition=Established", "crd/drifters.release.test")
		mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", custom("drifters", "x")), nil))
		run(
			ctx,
			"kubectl",
			"patch",
			"drifters",
			"x",
			"-n",
			namespace,
			"--type=merge",
			"-p",
			`{"spec":{"a":{"b":2},"theirs":true}}`,
		)
		mustApply(ctx, engine, desired(namespace, chartOf("1.1.0", custom("drifters", "x")), nil))
		Expect(
			run(ctx, "kubectl", "get", "drifters", "x", "-n", namespace, "-o", "jsonpath={.spec}"),
		).To(MatchJSON(`{"a":{"b":1},"theirs":true}`))
	})

	It("runs hooks, and keeps CRDs in a chart's templates and what a person wants kept", func(ctx SpecContext) {
		engine := newEngine("one")
		hook := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hook\n  annotations: {helm.sh/hook: pre-upgrade}\n"
		mustApply(
			ctx,
			engine,
			desired(namespace, chartOf("1.0.0", hook, crd("survivors"), configMap("config", ""), configMap("wanted", "")), nil),
		)
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "wanted"))
		run(ctx, "kubectl", "annotate", "configmap", "wanted", "-n", namespace, "helm.sh/resource-policy=keep")

		result := mustApply(ctx, engine, desired(namespace, chartOf("1.1.0", hook, configMap("config", "")), nil))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "hook", "wanted"))
		Expect(result.Left).To(ConsistOf(HaveField("Name", "survivors.release.test"), HaveField("Name", "wanted")))
		run(ctx, "kubectl", "get", "crd", "survivors.release.test")
	})
})
