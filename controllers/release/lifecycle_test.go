package release_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/test/bed"
)

var _ = Describe("A release", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	It("is installed, is in sync, and is known to both helm programs", func(ctx SpecContext) {
		engine := newEngine("one")
		spec := newSpec(namespace, chartOf("1.2.3", configMap("config", "{{ .Values.variables.LEVEL }}"),
			serviceAccount("manager"), clusterRole, clusterRoleBinding, service, deployment("manager", "2")),
			map[string]any{"variables": map[string]any{"LEVEL": "debug"}})
		Expect(observe(ctx, engine, spec).State).To(Equal(state.Absent))

		Expect(mustApply(ctx, engine, spec).Revision).To(Equal(1))

		cm := getConfigMap(ctx, namespace, "config")
		Expect(cm.Data).To(HaveKeyWithValue("key", "debug"))
		Expect(cm.ManagedFields[0].Manager).To(Equal("capstan"))

		record, err := client.CoreV1().Secrets(namespace).Get(ctx, "sh.helm.release.v1."+name+".v1", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(record.ManagedFields).To(HaveEach(HaveField("Manager", "capstan")))

		observed := observe(ctx, engine, spec)
		Expect(observed.State).To(Equal(state.InSync))
		Expect(observed.Revision).To(HaveField("Version", "v1.2.3"))
		Expect(observed.Revision).To(HaveField("ChartDigest", spec.ChartDigest))
		Expect(observed.Revision.Time.Time).To(BeTemporally("~", time.Now(), time.Minute))

		for _, helm := range []string{"helm", "helm4"} {
			Expect(run(ctx, helm, "list", "-n", namespace)).To(MatchRegexp(name + `\s.*deployed.*` + name +
				`-1\.2\.3\s+v1\.2\.3`))
			Expect(run(ctx, helm, "history", name, "-n", namespace)).To(ContainSubstring("Install complete"))
			Expect(run(ctx, helm, "get", "values", name, "-n", namespace)).To(ContainSubstring("LEVEL: debug"))
			Expect(run(ctx, helm, "get", "manifest", name, "-n", namespace)).To(ContainSubstring("kind: Deployment"))
		}
	})

	It("neither reads nor tries what an upgrade leaves as it is verified to be", func(ctx SpecContext) {
		engine := newEngine("one")
		objects := func(first string) release.Spec {
			return specOf(namespace, "1.0.0", configMap("a", first), configMap("b", ""), configMap("c", ""), configMap("d", ""))
		}
		installed := mustApply(ctx, engine, objects(""))

		// Of c, another program has changed something since, and d was never verified.
		edited := getConfigMap(ctx, namespace, "c")
		edited.Data = map[string]string{"key": "edited"}
		_, err := client.CoreV1().ConfigMaps(namespace).Update(ctx, edited, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())

		memory := memoryOf(ctx, engine, releaseIn(namespace))
		memory.Verified = slices.DeleteFunc(installed.Applied(), func(s object.Snapshot) bool {
			return s.Object.Name == "c" || s.Object.Name == "d"
		})
		Expect(memory.Verified).To(HaveLen(2))

		begin, spec := time.Now(), objects("changed")
		prepared, err := engine.Prepare(ctx, spec, memory, observe(ctx, engine, spec), false)
		Expect(err).NotTo(HaveOccurred())
		result, err := prepared.Apply(ctx, "")
		Expect(err).NotTo(HaveOccurred())

		requests := func() (map[string]int, error) {
			all, err := apiServer.Requests(func(r bed.Request) bool {
				return r.UserAgent == "one" && r.Resource == "configmaps" && r.Namespace == namespace && r.Received.After(begin)
			})

			return bed.Count(all, func(r bed.Request) string { return r.Name }), err
		}
		Eventually(requests).Should(Equal(map[string]int{"a": 3, "c": 3, "d": 2}))

		Expect(result.With(apply.Updated)).To(HaveLen(2))
		Expect(result.With(apply.Unchanged)).To(HaveLen(2))
		Expect(result.Applied()).To(HaveLen(4), "all are verified now")
		Expect(getConfigMap(ctx, namespace, "a").Data).To(HaveKeyWithValue("key", "changed"))
		Expect(getConfigMap(ctx, namespace, "c").Data).To(HaveKeyWithValue("key", ""))
	})

	It("needs few requests to install, and one when in sync", func(ctx SpecContext) {
		config, err := apiServer.ConfigFor("counted-" + namespace)
		Expect(err).NotTo(HaveOccurred())

		engine := newEngine("one", func(c *rest.Config) { *c = *config })
		requests := func() []bed.Request {
			all, err := apiServer.Requests(func(r bed.Request) bool { return r.User == "counted-"+namespace })
			Expect(err).NotTo(HaveOccurred())

			return all
		}
		spec := specOf(namespace, "1.0.0", configMap("a", ""), configMap("b", ""), configMap("c", ""), configMap("d", ""),
			configMap("e", ""), configMap("f", ""), configMap("g", ""), serviceAccount("manager"), clusterRole,
			clusterRoleBinding, service, deployment("manager", "1"))

		const objects = 12

		_, err = engine.Render(spec)
		Expect(err).NotTo(HaveOccurred()) // discovers the API, once for all releases

		before := len(requests())

		mustApply(ctx, engine, spec)

		// Each object is tried, and created. The last request is whether another program has made a revision meanwhile.
		const lists, records, later = 1, 2, 1

		Eventually(requests).Should(HaveLen(before + 2*objects + lists + records + later))

		Expect(observe(ctx, engine, spec).State).To(Equal(state.InSync))
		Eventually(requests).Should(HaveLen(before + 2*objects + lists + records + later + 1))

		// A look at what has been applied reads no record, because the engine has written it.
		look, err := engine.Look(ctx, spec.Release, &v1alpha2.InfrastructureProvider{}, state.Owner{})
		Expect(err).NotTo(HaveOccurred())
		Expect(look.Record.Keys()).To(HaveLen(objects))
		Eventually(requests).Should(HaveLen(before + 2*objects + lists + records + later + 2))

		all := requests()
		last := all[len(all)-1]
		Expect(last.Verb + " " + last.Resource).To(Equal("list secrets"))
		Expect(bed.Count(all, func(r bed.Request) string {
			return r.Verb + " " +
				r.Resource
		})).To(HaveKeyWithValue("get secrets", later))
	})

	It("can have 600 objects, of which an upgrade writes what changes", func(ctx SpecContext) {
		const objects = 600

		config, err := apiServer.ConfigFor("counted-" + namespace)
		Expect(err).NotTo(HaveOccurred())

		engine := newEngine("one", func(c *rest.Config) { *c = *config })
		spec := func(version string) release.Spec {
			templates := []string{configMap("version", version)}
			for i := range objects - 1 {
				templates = append(templates, configMap(fmt.Sprintf("c%d", i), ""))
			}

			return specOf(namespace, version, templates...)
		}
		writes := func(name string) []bed.Request {
			all, err := apiServer.Requests(func(r bed.Request) bool {
				return r.User == "counted-"+namespace && r.Verb == "patch" && strings.HasPrefix(r.Name, name) && !r.DryRun
			})
			Expect(err).NotTo(HaveOccurred())

			return all
		}

		begin := time.Now()

		mustApply(ctx, engine, spec("1.0.0"))
		AddReportEntry("installed in " + time.Since(begin).String())
		Eventually(func() []bed.Request { return writes("") }).Should(HaveLen(objects))

		begin = time.Now()

		mustApply(ctx, engine, spec("1.1.0"))
		AddReportEntry("upgraded in " + time.Since(begin).String())
		Expect(getConfigMap(ctx, namespace, "version").Data).To(HaveKeyWithValue("key", "1.1.0"))
		Eventually(func() []bed.Request { return writes("version") }).Should(HaveLen(2))
		Expect(writes("")).To(HaveLen(objects + 1))
	})

	It("is upgraded in place, patching and pruning objects", func(ctx SpecContext) {
		engine := newEngine("one")
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("kept", "old"), configMap("dropped", ""), clusterRole,
			serviceAccount("manager"), deployment("manager", "1")))
		before := getDeployment(ctx, namespace, "manager")

		spec := specOf(namespace, "1.1.0", configMap("kept", "new"), configMap("added", ""), serviceAccount("manager"),
			deployment("manager", "3"))
		Expect(observe(ctx, engine, spec).State).To(Equal(state.OutOfSync))
		result := mustApply(ctx, engine, spec)

		Expect(result.Revision).To(Equal(2))
		Expect(result.With(apply.Deleted)).To(HaveLen(2))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "added"))
		_, err := client.RbacV1().ClusterRoles().Get(ctx, namespace+"-role", metav1.GetOptions{})
		Expect(err).To(beNotFound())

		after := getDeployment(ctx, namespace, "manager")
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed"}))
	})

	It("keeps fields that other programs added, and removes its own former ones", func(ctx SpecContext) {
		engine := newEngine("one")
		withData := func(data string) string {
			return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shared\ndata: {" + data + "}\n"
		}
		mustApply(ctx, engine, specOf(namespace, "1.0.0", withData("ours: a, former: b")))
		cm := getConfigMap(ctx, namespace, "shared")

		cm.Data["theirs"] = "c"
		_, err := client.CoreV1().ConfigMaps(namespace).Update(ctx, cm, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())

		mustApply(ctx, engine, specOf(namespace, "1.1.0", withData("ours: a")))

		cm = getConfigMap(ctx, namespace, "shared")
		Expect(cm.Data).To(Equal(map[string]string{"ours": "a", "theirs": "c"}))
	})

	It("keeps no more revisions than the history limit", func(ctx SpecContext) {
		engine := newEngine("one")

		for _, version := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"} {
			spec := specOf(namespace, version, configMap("config", version))
			spec.HistoryLimit = 3
			mustApply(ctx, engine, spec)
		}

		Expect(history(ctx, namespace)).To(Equal([]string{"3 superseded", "4 superseded", "5 deployed"}))
	})

	It("is read from its record", func(ctx SpecContext) {
		engine := newEngine("one")
		spec := specOf(namespace, "1.0.0", configMap("config", ""), clusterRole)
		mustApply(ctx, engine, spec)
		revision := observe(ctx, engine, spec).Revision

		record, err := engine.Read(ctx, releaseIn(namespace), revision)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.AppVersion).To(Equal("v1.0.0"))
		Expect(record.Description).To(Equal("Install complete"))

		var objects []string
		for _, o := range record.Objects {
			objects = append(objects, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
		}

		Expect(objects).To(ConsistOf("ConfigMap "+namespace+"/config", "ClusterRole /"+namespace+"-role"))
	})

	It("restores custom resources", func(ctx SpecContext) {
		engine := newEngine("one")

		establishCRD(ctx, namespace, "drifters")
		mustApply(ctx, engine, specOf(namespace, "1.0.0", custom("drifters", "x")))
		run(ctx, "kubectl", "patch", "drifters", "x", "-n", namespace, "--type=merge", "-p",
			`{"spec":{"a":{"b":2},"theirs":true}}`)
		mustApply(ctx, engine, specOf(namespace, "1.1.0", custom("drifters", "x")))
		Expect(run(ctx, "kubectl", "get", "drifters", "x", "-n", namespace, "-o",
			"jsonpath={.spec}")).To(MatchJSON(`{"a":{"b":1},"theirs":true}`))
	})

	It("keeps CRDs and objects that a user annotated", func(ctx SpecContext) {
		engine := newEngine("one")

		mustApply(ctx, engine, specOf(namespace, "1.0.0", crd("survivors"), configMap("config", ""),
			configMap("wanted", "")))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "wanted"))
		run(ctx, "kubectl", "annotate", "configmap", "wanted", "-n", namespace, "helm.sh/resource-policy=keep")

		result := mustApply(ctx, engine, specOf(namespace, "1.1.0", configMap("config", "")))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "wanted"))
		Expect(result.With(apply.Left)).To(ConsistOf(
			HaveField("Object.Name", "survivors.release.test"), HaveField("Object.Name", "wanted")))
		run(ctx, "kubectl", "get", "crd", "survivors.release.test")
	})
})
