package release_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/release"
)

// podKind is a kind whose objects describe pods, what an object of the kind contains, and where its pods are described.
type podKind struct{ kind, apiVersion, content, path string }

const (
	selecting  = "spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {POD}}}\n"
	inTemplate = ".spec.template.spec"
)

var podKinds = []podKind{
	{"Deployment", "apps/v1", selecting, inTemplate},
	{"DaemonSet", "apps/v1", selecting, inTemplate},
	{"StatefulSet", "apps/v1", selecting, inTemplate},
	{"ReplicaSet", "apps/v1", selecting, inTemplate},
	{"ReplicationController", "v1", strings.Replace(selecting, "{matchLabels: {app: x}}", "{app: x}", 1), inTemplate},
	{"PodTemplate", "v1", "template: {metadata: {labels: {app: x}}, spec: {POD}}\n", ".template.spec"},
	{"Job", "batch/v1", "spec: {template: {spec: {restartPolicy: Never, POD}}}\n", inTemplate},
	{
		"CronJob", "batch/v1",
		"spec: {schedule: 0 0 1 1 *, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, POD}}}}}\n",
		".spec.jobTemplate.spec.template.spec",
	},
	{"Pod", "v1", "spec: {POD}\n", ".spec"},
}

// with returns an object with fields of its pods.
func (k podKind) with(fields string) string {
	object := "apiVersion: " + k.apiVersion + "\nkind: " + k.kind + "\nmetadata:\n  name: x\n" + k.content

	return strings.Replace(object, "POD", fields+"containers: [{name: c, image: example.org/c:v1}]", 1)
}

var _ = Describe("A field that a revision drops", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) { namespace, engine = newNamespace(ctx), newEngine("one") })

	get := func(ctx context.Context, kind, path string) string {
		GinkgoHelper()
		return run(ctx, "kubectl", "get", kind, "x", "-n", namespace, "-o", "jsonpath="+path)
	}

	// The API server copies each name of the account to the other one, and no program owns the copy.
	It("is dropped if it is the account of pods", func(ctx SpecContext) {
		const none = "<nil> <nil>"

		Eventually(func() error { // pods need an account
			_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return err
		}).Should(Succeed())

		objects := func(fields string) []string {
			templates := []string{serviceAccount("powerful")}
			for _, k := range podKinds {
				templates = append(templates, k.with(fields))
			}

			return templates
		}
		accounts := func() map[string]string {
			GinkgoHelper()

			args := []string{"get", "-n", namespace, "-o", "json"}
			for _, k := range podKinds {
				args = append(args, k.kind+"/x")
			}

			var list unstructured.UnstructuredList
			Expect(json.Unmarshal([]byte(run(ctx, "kubectl", args...)), &list)).To(Succeed())

			found := map[string]string{}

			for i, k := range podKinds {
				path := strings.Split(k.path, ".")[1:]
				pod, _, _ := unstructured.NestedMap(list.Items[i].Object, path...)
				found[list.Items[i].GetKind()] = fmt.Sprint(pod["serviceAccountName"], " ", pod["serviceAccount"])
			}

			return found
		}

		mustApply(ctx, engine, specOf(namespace, "1.0.0", objects("serviceAccountName: powerful, ")...))
		Expect(accounts()).To(HaveEach("powerful powerful"))

		before := get(ctx, "deployment", "{.metadata.uid}")
		result := mustApply(ctx, engine, specOf(namespace, "1.1.0", objects("")...))

		Expect(accounts()).To(And(HaveKeyWithValue("Pod", "default default"), HaveEach(BeElementOf(none, "default default"))))
		Expect(result.With(apply.Replaced)).To(
			ConsistOf(HaveField("Object.Kind", "Job"), HaveField("Object.Kind", "Pod")), "theirs is immutable")
		Expect(get(ctx, "deployment", "{.metadata.uid} {.metadata.generation}")).To(Equal(before + " 2"))
		Expect(compare(ctx, engine, namespace).Differences).To(BeEmpty())

		mustApply(ctx, engine, specOf(namespace, "1.2.0", objects("serviceAccount: powerful, ")...))
		Expect(accounts()).To(HaveEach("powerful powerful"))

		mustApply(ctx, engine, specOf(namespace, "1.3.0", objects(`serviceAccountName: "", `)...))
		Expect(accounts()).To(HaveEach(BeElementOf(none, "default default")))
	})

	It("is dropped although it was applied when its copy was not known", func(ctx SpecContext) {
		object := podKinds[0]
		marked := strings.Replace(object.with("serviceAccountName: powerful, "), "  name: x\n", "  name: x\n"+
			"  labels: {app.kubernetes.io/managed-by: Helm}\n  annotations: {meta.helm.sh/release-name: "+name+
			", meta.helm.sh/release-namespace: "+namespace+"}\n", 1)
		cmd := command(ctx, "kubectl", "apply", "--server-side", "--field-manager=capstan", "-n", namespace, "-f", "-")
		cmd.Stdin = strings.NewReader(marked)
		Expect(cmd.Run()).To(Succeed())

		mustApply(ctx, engine, specOf(namespace, "1.1.0", object.with("")))
		Expect(get(ctx, "deployment", "{"+object.path+".serviceAccountName}")).To(BeEmpty())
		Expect(get(ctx, "deployment", "{.metadata.generation}")).To(Equal("2"), "it is one write")
	})

	It("is the account of a user if the chart never had one", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", podKinds[0].with("")))
		run(ctx, "kubectl", "set", "serviceaccount", "deployment", "x", "other", "-n", namespace)
		Expect(compare(ctx, engine, namespace).Differences).To(BeEmpty())

		mustApply(ctx, engine, specOf(namespace, "1.1.0", podKinds[0].with("hostPID: true, ")))
		Expect(get(ctx, "deployment", "{"+podKinds[0].path+".serviceAccountName}")).To(Equal("other"))
	})

	of := func(apiVersion, kind, spec string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata:\n  name: x\nspec: {" + spec + "}\n"
	}
	policy := func(rules string) string {
		return of("networking.k8s.io/v1", "NetworkPolicy", "podSelector: {}, "+rules)
	}
	autoscaler := func(version, metrics string) string {
		return of("autoscaling/"+version, "HorizontalPodAutoscaler",
			"maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}, "+metrics)
	}
	serving := func(spec string) string { return of("v1", "Service", "ports: [{port: 80}], "+spec) }
	onNodes := func(port string) string { return of("v1", "Service", "type: NodePort, ports: [{port: 80"+port+"}]") }
	claim := func(source string) string {
		return of("v1", "PersistentVolumeClaim", "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}"+source)
	}
	running := func(image string) string {
		return strings.Replace(podKinds[0].with(""), "example.org/c:v1", image, 1)
	}

	const (
		cpu    = "targetCPUUtilizationPercentage: 60"
		memory = "metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 7}}}]"
		metric = "{.spec.metrics[*].resource.name}"
	)

	// Other fields of these and of other kinds were tried on the API server: they are dropped without help.
	DescribeTable("becomes what it would be in a new object, or stays if the API server keeps it:",
		func(ctx SpecContext, kind, first, second, path, want string) {
			mustApply(ctx, engine, specOf(namespace, "1.0.0", first))
			before := get(ctx, kind, "{.metadata.uid}")
			mustApply(ctx, engine, specOf(namespace, "1.1.0", second))
			Expect(get(ctx, kind, path)).To(Equal(want))
			Expect(get(ctx, kind, "{.metadata.uid}")).To(Equal(before))
			Expect(compare(ctx, engine, namespace).Differences).To(BeEmpty())
		},
		Entry("outgoing traffic is restricted", "networkpolicy", policy("ingress: [{}]"), policy("egress: [{}]"),
			"{.spec.policyTypes}", `["Ingress","Egress"]`),
		Entry("outgoing traffic is not restricted any more", "networkpolicy", policy("egress: [{}]"), policy("ingress: [{}]"),
			"{.spec.policyTypes}", `["Ingress"]`),
		Entry("a metric, in an older version of the API", "hpa.v2.autoscaling",
			autoscaler("v2", memory), autoscaler("v1", cpu), metric, "cpu"),
		Entry("a metric, in a newer version of the API", "hpa.v2.autoscaling",
			autoscaler("v1", cpu), autoscaler("v2", memory), metric, "memory"),
		Entry("all metrics, in an older version of the API", "hpa.v2.autoscaling",
			autoscaler("v2", memory), autoscaler("v1", ""), metric, "cpu"),
		Entry("the type of a Service", "service", serving("type: LoadBalancer, externalTrafficPolicy: Local"), serving(""),
			"{.spec.type} {.spec.externalTrafficPolicy} {.spec.ports[0].nodePort}", "ClusterIP  "),
		Entry("the affinity of a Service", "service", serving("sessionAffinity: ClientIP"), serving(""),
			"{.spec.sessionAffinity} {.spec.sessionAffinityConfig}", "None "),

		// What stays is documented.
		Entry("the address of a Service", "service", serving("clusterIP: None"), serving(""), "{.spec.clusterIP}", "None"),
		Entry("the port of nodes", "service", onNodes(", nodePort: 30987"), onNodes(""),
			"{.spec.ports[0].nodePort}", "30987"),
		Entry("the families of addresses", "service", serving("ipFamilyPolicy: PreferDualStack"), serving(""),
			"{.spec.ipFamilyPolicy}", "PreferDualStack"),
		Entry("the source of a claim", "persistentvolumeclaim",
			claim(", dataSource: {kind: PersistentVolumeClaim, name: a}"), claim(""),
			"{.spec.dataSource.name} {.spec.dataSourceRef.name}", "a a"),
		Entry("the policy that follows from a tag", "deployment",
			running("example.org/c:latest"), running("example.org/c:v1"),
			"{"+inTemplate+".containers[0].imagePullPolicy}", "Always"),
	)
})
