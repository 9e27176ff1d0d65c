package release_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/test/bed"
)

// union is an object of a release with a field that has one of several members, and a change by a user who chooses
// another one.
type union struct {
	resource schema.GroupVersionResource
	// object is its manifest, where MEMBER is the first or second, which versions 1.0.0 and 1.1.0 have.
	object, first, second string
	// added is what the user adds once, and edit what is changed each time, as operations of a JSON patch; none if there
	// is only what the API server fills in.
	added, edit string
	// gone are the fields that make the object invalid, as JSON pointers, and kept are others of the user's.
	gone []string
	kept map[string]any
}

var (
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	daemonSets   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	autoscalers  = schema.GroupVersionResource{
		Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers",
	}
	budgets   = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	ingresses = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	cronJobs  = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
)

// workload is a Deployment, DaemonSet or StatefulSet whose spec and pods have more fields.
func workload(kind, spec, pod, container string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: %s
metadata:
  name: object
spec:
  selector: {matchLabels: {app: manager}}
  %s
  template:
    metadata: {labels: {app: manager}}
    spec:
      %s
      containers:
      - {name: proxy, image: proxy}
      - name: manager
        image: manager
        %s
`, kind, spec, pod, container)
}

// inContainer, inPod and inSpec are a union of a Deployment. The user inserts another container, so that the API
// server counts containers differently than the release.
func inContainer(first, second, path, theirs string, gone []string, kept map[string]any) union {
	const insert = `{"op": "add", "path": "/spec/template/spec/containers/0",
		"value": {"name": "first", "image": "first"}}`

	const manager = "/spec/template/spec/containers/2/"

	u := union{
		resource: deployments, object: workload("Deployment", "", "", "MEMBER"), first: first, second: second,
		added: insert, edit: fmt.Sprintf(`{"op": "replace", "path": "%s", "value": %s}`, manager+path, theirs),
		kept: map[string]any{"/spec/template/spec/containers/0/name": "first"},
	}
	for _, field := range gone {
		u.gone = append(u.gone, manager+field)
	}

	for field, value := range kept {
		u.kept[manager+field] = value
	}

	return u
}

func inPod(first, second, path, theirs string, gone []string, kept map[string]any) union {
	return union{
		resource: deployments, object: workload("Deployment", "", "MEMBER", ""), first: first, second: second,
		edit: fmt.Sprintf(`{"op": "replace", "path": "/spec/template/spec/%s", "value": %s}`, path, theirs),
		gone: gone, kept: kept,
	}
}

func inSpec(kind string, resource schema.GroupVersionResource, first, second, edit string, gone ...string) union {
	return union{
		resource: resource, object: workload(kind, "MEMBER", "", ""), first: first, second: second, edit: edit, gone: gone,
	}
}

func inObject(resource schema.GroupVersionResource, object, first, second, edit string, gone ...string) union {
	return union{resource: resource, object: object, first: first, second: second, edit: edit, gone: gone}
}

const (
	unionService = "apiVersion: v1\nkind: Service\nmetadata:\n  name: object\nspec: {selector: {app: manager}, MEMBER}\n"
	unionScaler  = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: object
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: elsewhere}
  maxReplicas: 3
  metrics: [MEMBER]
`
	unionBudget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: object\n" +
		"spec: {selector: {matchLabels: {app: manager}}, MEMBER}\n"
	unionIngress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: object\n" +
		"spec: {defaultBackend: {MEMBER}}\n"
	unionCronJob = `apiVersion: batch/v1
kind: CronJob
metadata:
  name: object
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: job, image: job, env: [MEMBER]}]
`
)

var _ = Describe("A member of a union beside the one that is applied", func() {
	var (
		namespace string
		engine    *release.Engine
		objects   dynamic.Interface
	)

	BeforeEach(func(ctx SpecContext) {
		namespace, engine = newNamespace(ctx), newEngine("one")
		objects = dynamic.NewForConfigOrDie(apiServer.Config())
	})

	get := func(ctx context.Context, u union) *unstructured.Unstructured {
		GinkgoHelper()

		o, err := objects.Resource(u.resource).Namespace(namespace).Get(ctx, "object", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		return o
	}
	patch := func(ctx context.Context, u union, operations string) {
		GinkgoHelper()

		_, err := objects.Resource(u.resource).Namespace(namespace).Patch(ctx, "object", types.JSONPatchType,
			[]byte("["+operations+"]"), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		Expect(err).NotTo(HaveOccurred())
	}
	// edit makes the user's change, of fields that no program owns if forgotten is true, and returns the object then.
	edit := func(ctx context.Context, u union, forgotten bool) *unstructured.Unstructured {
		GinkgoHelper()

		if u.edit != "" {
			patch(ctx, u, u.edit)
		}

		if forgotten {
			patch(ctx, u, `{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}`)
		}

		return get(ctx, u)
	}
	// written returns the engine's writes.
	written := func(u union) func() []bed.Request {
		return func() []bed.Request {
			requests, err := apiServer.Requests(func(r bed.Request) bool {
				return r.UserAgent == "one" && r.Namespace == namespace && r.Resource == u.resource.Resource && r.Write() &&
					r.Code < http.StatusMultipleChoices
			})
			Expect(err).NotTo(HaveOccurred())

			return requests
		}
	}
	expectInPlace := func(ctx context.Context, u union, before *unstructured.Unstructured, results apply.Results) {
		GinkgoHelper()

		after := get(ctx, u)
		Expect(after.GetUID()).To(Equal(before.GetUID()))

		if before.GetGeneration() > 0 {
			Expect(after.GetGeneration()).To(Equal(before.GetGeneration()+1), "one rollout")
		}

		for _, field := range u.gone {
			Expect(valueAt(after, field)).To(BeNil(), field)
		}

		for field, value := range u.kept {
			Expect(valueAt(after, field)).To(Equal(value), field)
		}

		Expect(results.With(apply.Replaced)).To(BeEmpty())

		if len(u.gone) > 0 {
			Expect(withoutFields(results)).To(ConsistOf(And(
				HaveField("Object.Name", "object"), HaveField("Removed", ConsistOf(u.gone)))))
		} else {
			Expect(withoutFields(results)).To(BeEmpty())
		}

		Expect(compare(ctx, engine, namespace).Differences).To(BeEmpty(), "the value is the release's")
	}

	DescribeTable("is removed in one write, and nothing else",
		func(ctx SpecContext, u union) {
			for _, forgotten := range []bool{false, u.edit != ""} {
				By(fmt.Sprintf("forgotten: %t", forgotten))

				namespace = newNamespace(ctx)
				version := func(number, member string) release.Spec {
					return specOf(namespace, number, strings.ReplaceAll(u.object, "MEMBER", member))
				}

				mustApply(ctx, engine, version("1.0.0", u.first))
				patch(ctx, u, u.added)

				if u.edit != "" {
					before := edit(ctx, u, forgotten)
					differences := compare(ctx, engine, namespace).Differences
					Expect(differences).To(HaveLen(1))

					for _, field := range u.gone {
						Expect(differences[0].Fields).To(ContainElement(HavePrefix(field)))
					}

					result, err := engine.Correct(ctx, releaseIn(namespace), confirmed(namespace, 1), differences)
					Expect(err).NotTo(HaveOccurred())
					expectInPlace(ctx, u, before, result.Results)
				}

				before := edit(ctx, u, forgotten)
				result := mustApply(ctx, engine, version("1.1.0", u.second))
				expectInPlace(ctx, u, before, result.Results)

				if u.edit != "" {
					before = edit(ctx, u, forgotten)
					result, err := rollback(ctx, engine, releaseIn(namespace),
						release.RollbackOptions{Target: confirmed(namespace, 1)}, observe(ctx, engine, version("1.0.0", u.first)))
					Expect(err).NotTo(HaveOccurred())
					expectInPlace(ctx, u, before, result.Results)
				}

				// One each, and one before that if the managed fields change; none to find out.
				steps, writes := 1, 1
				if u.edit != "" {
					steps = 3
				}

				writes += steps
				if len(u.gone) > 0 {
					writes += steps
				}

				Eventually(written(u)).Should(And(HaveLen(writes), HaveEach(HaveField("Verb", "patch"))))
			}
		},
		Entry("a probe, the release's is named", inContainer(
			"livenessProbe: {tcpSocket: {port: 1}}", "livenessProbe: {grpc: {port: 1}}",
			"livenessProbe", `{"exec": {"command": ["x"]}, "failureThreshold": 7, "initialDelaySeconds": 5}`,
			[]string{"livenessProbe/exec"},
			map[string]any{"livenessProbe/failureThreshold": int64(7), "livenessProbe/initialDelaySeconds": int64(5)})),
		Entry("a probe, the user's is named", inContainer(
			"livenessProbe: {exec: {command: [a]}}", "livenessProbe: {httpGet: {port: 1}}",
			"livenessProbe", `{"grpc": {"port": 2}, "failureThreshold": 7, "initialDelaySeconds": 5}`,
			[]string{"livenessProbe/grpc"},
			map[string]any{"livenessProbe/failureThreshold": int64(7), "livenessProbe/initialDelaySeconds": int64(5)})),
		Entry("a startup probe", inContainer(
			"startupProbe: {httpGet: {port: 1}}", "startupProbe: {exec: {command: [a]}}",
			"startupProbe", `{"tcpSocket": {"port": 2}, "timeoutSeconds": 9}`,
			[]string{"startupProbe/tcpSocket"}, map[string]any{"startupProbe/timeoutSeconds": int64(9)})),
		Entry("a handler of the lifecycle, the release's is named", inContainer(
			"lifecycle: {preStop: {httpGet: {port: 1}}}", "lifecycle: {preStop: {sleep: {seconds: 1}}}",
			"lifecycle", `{"preStop": {"exec": {"command": ["x"]}}, "postStart": {"exec": {"command": ["y"]}}}`,
			[]string{"lifecycle/preStop/exec"}, map[string]any{"lifecycle/postStart/exec/command/0": "y"})),
		Entry("a handler of the lifecycle, the user's is named", inContainer(
			"lifecycle: {postStart: {exec: {command: [a]}}}", "lifecycle: {postStart: {httpGet: {port: 1}}}",
			"lifecycle", `{"postStart": {"sleep": {"seconds": 1}}, "stopSignal": "SIGUSR1"}`,
			[]string{"lifecycle/postStart/sleep"}, nil)),
		Entry("a variable's value", inContainer(
			"env: [{name: A, value: a}, {name: B, value: b}]", "env: [{name: B, value: c}, {name: A, value: a}]",
			"env", `[{"name": "X", "value": "x"}, {"name": "A", "value": "a"},
				{"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]`,
			[]string{"env/2/valueFrom"}, map[string]any{"env/0/value": "x"})),
		Entry("a variable's source", inContainer(
			"env: [{name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
			"env: [{name: B, valueFrom: {secretKeyRef: {name: a, key: a}}}]",
			"env", `[{"name": "X", "value": "x"}, {"name": "B", "value": "b"}]`,
			[]string{"env/1/value"}, map[string]any{"env/0/value": "x"})),
		Entry("a variable's source, in that", inContainer(
			"env: [{name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
			"env: [{name: B, valueFrom: {secretKeyRef: {name: a, key: a}}}]",
			"env", `[{"name": "B", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "x"}}}]`,
			[]string{"env/0/valueFrom/configMapKeyRef"}, nil)),
		Entry("two variables, and a probe", inContainer(
			"env: [{name: A, value: a}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]\n"+
				"        livenessProbe: {tcpSocket: {port: 1}}",
			"env: [{name: A, value: b}, {name: B, valueFrom: {secretKeyRef: {name: a, key: a}}}]\n"+
				"        livenessProbe: {grpc: {port: 1}}",
			"env", `[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
				{"name": "B", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "x"}}}]},
				{"op": "replace", "path": "/spec/template/spec/containers/2/livenessProbe",
				"value": {"exec": {"command": ["x"]}, "periodSeconds": 77}`,
			[]string{"env/0/valueFrom", "env/1/valueFrom/configMapKeyRef", "livenessProbe/exec"},
			map[string]any{"livenessProbe/periodSeconds": int64(77)})),
		Entry("a volume's source, the release's is named", inPod(
			"volumes: [{name: v, secret: {secretName: a}}]", "volumes: [{name: v, configMap: {name: a}}]",
			"volumes", `[{"name": "x", "emptyDir": {}}, {"name": "v", "hostPath": {"path": "/x"}}]`,
			[]string{"/spec/template/spec/volumes/1/hostPath"},
			map[string]any{"/spec/template/spec/volumes/0/name": "x"})),
		Entry("a volume's source, the user's is named", inPod(
			"volumes: [{name: v, emptyDir: {}}]", "volumes: [{name: v, secret: {secretName: a}}]",
			"volumes", `[{"name": "x", "emptyDir": {}}, {"name": "v", "csi": {"driver": "x"}}]`,
			[]string{"/spec/template/spec/volumes/1/csi"},
			map[string]any{"/spec/template/spec/volumes/0/name": "x"})),
		Entry("a volume's source, one that the API server misspells", inPod(
			"volumes: [{name: v, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}]",
			"volumes: [{name: v, configMap: {name: a}}]",
			"volumes", `[{"name": "v", "emptyDir": {"medium": "Memory"}}]`,
			[]string{"/spec/template/spec/volumes/0/emptyDir"}, nil)),
		Entry("a volume's source, of none", union{
			resource: deployments, object: workload("Deployment", "", "volumes: [MEMBER]", ""),
			first: "{name: v}", second: "{name: v, configMap: {name: a}}",
			gone: []string{"/spec/template/spec/volumes/0/emptyDir"},
		}),
		Entry("a Deployment's strategy", inSpec("Deployment", deployments,
			"strategy: {type: Recreate}", "strategy: {type: Recreate}\n  minReadySeconds: 1",
			`{"op": "replace", "path": "/spec/strategy", "value": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3}}}`,
			"/spec/strategy/rollingUpdate")),
		Entry("a Deployment's strategy, of none", inSpec("Deployment", deployments,
			"", "strategy: {type: Recreate}", "", "/spec/strategy/rollingUpdate")),
		Entry("a Deployment's strategy, of the release before", inSpec("Deployment", deployments,
			"strategy: {rollingUpdate: {maxSurge: 1}}", "strategy: {type: Recreate}", "")),
		Entry("a StatefulSet's strategy", inSpec("StatefulSet", statefulSets,
			"updateStrategy: {type: OnDelete}", "updateStrategy: {type: OnDelete}\n  minReadySeconds: 1",
			`{"op": "replace", "path": "/spec/updateStrategy", "value":
				{"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}}`,
			"/spec/updateStrategy/rollingUpdate")),
		Entry("a StatefulSet's strategy, of none", inSpec("StatefulSet", statefulSets,
			"", "updateStrategy: {type: OnDelete}", "", "/spec/updateStrategy/rollingUpdate")),
		Entry("a DaemonSet's strategy", inSpec("DaemonSet", daemonSets,
			"updateStrategy: {type: OnDelete}", "updateStrategy: {type: OnDelete}\n  minReadySeconds: 1",
			`{"op": "replace", "path": "/spec/updateStrategy", "value":
				{"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 3}}}`)),
		Entry("a Service, ClusterIP to ExternalName", inObject(services, unionService,
			"type: ClusterIP, ports: [{port: 1}]", "ports: [{port: 1, name: a}]",
			`{"op": "replace", "path": "/spec/type", "value": "ExternalName"},
				{"op": "add", "path": "/spec/externalName", "value": "example.org"}`)),
		Entry("a Service, ExternalName to ClusterIP", inObject(services, unionService,
			"type: ExternalName, externalName: a.example.org", "type: ExternalName, externalName: b.example.org",
			`{"op": "replace", "path": "/spec", "value": {"type": "ClusterIP", "ports": [{"port": 1}]}}`)),
		Entry("a Service, ClusterIP to NodePort", inObject(services, unionService,
			"type: ClusterIP, ports: [{port: 1}]", "type: ClusterIP, ports: [{port: 1, name: a}]",
			`{"op": "replace", "path": "/spec/type", "value": "NodePort"},
				{"op": "add", "path": "/spec/externalTrafficPolicy", "value": "Local"}`)),
		Entry("a Service, ClusterIP to LoadBalancer", inObject(services, unionService,
			"type: ClusterIP, ports: [{port: 1}]", "type: ClusterIP, ports: [{port: 1, name: a}]",
			`{"op": "replace", "path": "/spec/type", "value": "LoadBalancer"},
				{"op": "add", "path": "/spec/externalTrafficPolicy", "value": "Local"},
				{"op": "add", "path": "/spec/loadBalancerSourceRanges", "value": ["10.0.0.0/8"]},
				{"op": "add", "path": "/spec/loadBalancerClass", "value": "example.org/x"}`,
			"/spec/loadBalancerSourceRanges")),
		Entry("a Service, NodePort to ClusterIP", inObject(services, unionService,
			"type: NodePort, ports: [{port: 1}]", "type: NodePort, ports: [{port: 1, name: a}]",
			`{"op": "replace", "path": "/spec/type", "value": "ClusterIP"}`)),
		Entry("a Service, LoadBalancer to NodePort", inObject(services, unionService,
			"type: LoadBalancer, ports: [{port: 1}]", "type: LoadBalancer, ports: [{port: 1, name: a}]",
			`{"op": "replace", "path": "/spec/type", "value": "NodePort"}`)),
		Entry("a Service's affinity", inObject(services, unionService,
			"sessionAffinity: None, ports: [{port: 1}]", "sessionAffinity: None, ports: [{port: 1, name: a}]",
			`{"op": "replace", "path": "/spec/sessionAffinity", "value": "ClientIP"}`)),
		Entry("an autoscaler's target", inObject(autoscalers, unionScaler,
			"{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}",
			"{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1}}}",
			`{"op": "replace", "path": "/spec/metrics/0/resource/target", `+
				`"value": {"type": "AverageValue", "averageValue": "5"}}`)),
		Entry("an autoscaler's metric", inObject(autoscalers, unionScaler,
			"{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}",
			"{type: Pods, pods: {metric: {name: a}, target: {type: AverageValue, averageValue: 1}}}",
			`{"op": "replace", "path": "/spec/metrics/0", "value": {"type": "ContainerResource", "containerResource":
				{"name": "memory", "container": "x", "target": {"type": "AverageValue", "averageValue": "5"}}}}`)),
		Entry("a disruption budget", inObject(budgets, unionBudget, "minAvailable: 1", "minAvailable: 2",
			`{"op": "remove", "path": "/spec/minAvailable"}, {"op": "add", "path": "/spec/maxUnavailable", "value": 1}`,
			"/spec/maxUnavailable")),
		Entry("an Ingress's backend", inObject(ingresses, unionIngress,
			"service: {name: a, port: {number: 1}}", "service: {name: a, port: {name: a}}",
			`{"op": "replace", "path": "/spec/defaultBackend", "value":
				{"resource": {"apiGroup": "example.org", "kind": "Bucket", "name": "x"}}}`,
			"/spec/defaultBackend/resource")),
		Entry("a variable of a CronJob", inObject(cronJobs, unionCronJob, "{name: A, value: a}", "{name: A, value: b}",
			`{"op": "replace", "path": "/spec/jobTemplate/spec/template/spec/containers/0/env/0", "value":
				{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}}`,
			"/spec/jobTemplate/spec/template/spec/containers/0/env/0/valueFrom")),
	)
})

var _ = Describe("An item of a list with the name of one that is applied", func() {
	It("is removed, and no other item", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		spec := func(version, port string) release.Spec {
			return specOf(namespace, version, deployment("manager", "1")+"        ports: [{name: a, containerPort: "+port+"}]\n")
		}

		mustApply(ctx, engine, spec("1.0.0", "1"))
		run(ctx, "kubectl", "patch", "deployment", "manager", "-n", namespace, "--type=json", "-p", `[{"op": "replace",
			"path": "/spec/template/spec/containers/0/ports",
			"value": [{"name": "x", "containerPort": 3}, {"name": "a", "containerPort": 4}]}]`)

		result := mustApply(ctx, engine, spec("1.1.0", "2"))
		Expect(withoutFields(result.Results)).To(ConsistOf(
			HaveField("Removed", ConsistOf("/spec/template/spec/containers/0/ports/1"))))
		Expect(getDeployment(ctx, namespace, "manager").Spec.Template.Spec.Containers[0].Ports).To(ConsistOf(
			HaveField("ContainerPort", int32(3)), HaveField("ContainerPort", int32(2))))
	})
})

var _ = Describe("An immutable field", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) { namespace, engine = newNamespace(ctx), newEngine("one") })

	uid := func(ctx context.Context, kind string) string {
		GinkgoHelper()

		return run(ctx, "kubectl", "get", kind, "-n", namespace, "-o",
			`jsonpath={.items[?(@.metadata.annotations.meta\.helm\.sh/release-namespace=="`+namespace+`")].metadata.uid}`)
	}

	DescribeTable("is changed by recreating the object, with a reason",
		func(ctx SpecContext, kind, object, first, second, reason string) {
			spec := func(version, value string) release.Spec {
				return specOf(namespace, version, strings.ReplaceAll(object, "VALUE", value))
			}

			mustApply(ctx, engine, spec("1.0.0", first))
			before := uid(ctx, kind)

			result := mustApply(ctx, engine, spec("1.1.0", second))
			Expect(result.With(apply.Replaced)).To(ConsistOf(And(HaveField("Object.Kind", kind),
				HaveField("Reason", ContainSubstring(reason)))))
			Expect(withoutFields(result.Results)).To(BeEmpty())
			Expect(uid(ctx, kind)).NotTo(BeElementOf(before, ""))
		},
		Entry("a Deployment's selector", "Deployment", deployment("VALUE", "1"), "a", "b", "spec.selector: "),
		Entry("a DaemonSet's selector", "DaemonSet",
			strings.ReplaceAll(workload("DaemonSet", "", "", ""), "app: manager", "app: VALUE"), "a", "b", "spec.selector: "),
		Entry("a StatefulSet's service", "StatefulSet", workload("StatefulSet", "serviceName: VALUE", "", ""), "a", "b",
			"spec: "),
		Entry("a Job's template", "Job", "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: object\n"+
			"spec: {template: {spec: {restartPolicy: Never, containers: [{name: j, image: j, env: [{name: A, VALUE}]}]}}}\n",
			"value: a", "valueFrom: {fieldRef: {fieldPath: metadata.name}}", "spec.template: "),
		Entry("a Service's address", "Service",
			strings.Replace(unionService, "MEMBER", "clusterIP: VALUE, ports: [{port: 1}]", 1),
			`""`, "None", "spec.clusterIPs[0]: "),
		Entry("a Secret's type", "Secret", secret+"type: VALUE\n", "Opaque", "example.org/other", "type: "),
		Entry("what an immutable ConfigMap has", "ConfigMap", configMap("object", "VALUE")+"immutable: true\n", "a", "b",
			"data: "),
		Entry("a binding's role", "ClusterRoleBinding", strings.Replace(clusterRoleBinding, "-role", "-VALUE", 1), "a", "b",
			"roleRef: "),
		Entry("an IngressClass's controller", "IngressClass", "apiVersion: networking.k8s.io/v1\nkind: IngressClass\n"+
			"metadata:\n  name: {{ .Release.Namespace }}\nspec: {controller: example.org/VALUE}\n", "a", "b",
			"spec.controller: "),
		Entry("a StorageClass's provisioner", "StorageClass", "apiVersion: storage.k8s.io/v1\nkind: StorageClass\n"+
			"metadata:\n  name: {{ .Release.Namespace }}\nprovisioner: example.org/VALUE\n", "a", "b", "provisioner: "),
		Entry("a RuntimeClass's handler", "RuntimeClass", "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\n"+
			"metadata:\n  name: {{ .Release.Namespace }}\nhandler: VALUE\n", "a", "b", "handler: "),
	)

	It("is changed so although there also is a member of a union of others", func(ctx SpecContext) {
		spec := func(version, selector string) release.Spec {
			return specOf(namespace, version, deployment(selector, "1")+"        env: [{name: A, value: a}]\n")
		}

		mustApply(ctx, engine, spec("1.0.0", "a"))
		run(ctx, "kubectl", "patch", "deployment", "manager", "-n", namespace, "--type=json", "-p", `[{"op": "replace",
			"path": "/spec/template/spec/containers/0/env/0",
			"value": {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}}]`)

		result := mustApply(ctx, engine, spec("1.1.0", "b"))
		Expect(result.With(apply.Replaced)).To(ConsistOf(HaveField("Reason", And(
			ContainSubstring("spec.selector: "), ContainSubstring("env[0].valueFrom: ")))))
		Expect(compare(ctx, engine, namespace).Differences).To(BeEmpty())
	})

	It("is none that is only invalid beside fields that are far away", func(ctx SpecContext) {
		plural := "far" + namespace
		kubectlApply(ctx, namespace, strings.Replace(crd(plural), "x-kubernetes-preserve-unknown-fields: true",
			"properties: {mode: {type: string}, a: {type: object, properties: {b: {type: object, properties: {c: {type: "+
				"object, properties: {d: {type: object, properties: {e: {type: string}}}}}}}}}}\n"+
				`            x-kubernetes-validations: [{rule: "!has(self.mode) || !has(self.a)", fieldPath: .a.b.c.d.e}]`, 1))
		run(ctx, "kubectl", "wait", "--for=condition=Established", "crd/"+plural+".release.test")

		object := func(spec string) string {
			return annotated("apiVersion: release.test/v1\nkind: Kind"+plural+"\nmetadata:\n  name: object\nspec: "+spec+"\n",
				"recreate-policy", "Always")
		}

		mustApply(ctx, engine, specOf(namespace, "1.0.0", object("{}")))
		run(ctx, "kubectl", "patch", plural, "object", "-n", namespace, "--type=merge", "-p", `{"spec":{"mode":"theirs"}}`)
		before := uid(ctx, plural)

		_, err := applySpec(ctx, engine, specOf(namespace, "1.1.0", object("{a: {b: {c: {d: {e: ours}}}}}")))
		Expect(expectError[*apply.DryRunError](err)).To(MatchError(And(ContainSubstring("spec.a.b.c.d.e: "),
			ContainSubstring("; fields that other programs have set are invalid beside those of the release, and Capstan "+
				"cannot tell which; remove them, for example with kubectl edit"))))
		Expect(uid(ctx, plural)).To(Equal(before))
	})
})

// valueAt returns the value at a JSON pointer of an object; nil if there is none.
func valueAt(o *unstructured.Unstructured, pointer string) any {
	var value any = o.Object

	for _, part := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		switch in := value.(type) {
		case map[string]any:
			value = in[part]
		case []any:
			i := 0
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(in) {
				return nil
			}

			value = in[i]
		default:
			return nil
		}
	}

	return value
}

// withoutFields returns the results of objects that fields of others were removed from.
func withoutFields(results apply.Results) apply.Results {
	return slices.DeleteFunc(slices.Clone(results), func(r apply.Result) bool { return len(r.Removed) == 0 })
}
