package e2e

import (
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// soon is the time within which drift must be corrected.
const soon = 30 * time.Second

const dockerNamespace = "infrastructure-docker-system"

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func dockerManager() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named(dockerNamespace, "capd-controller-manager")}
}

func dockerRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: named("", "capd-manager-role")}
}

var _ = Describe("Drift", Ordered, everyKubernetes, func() {
	var (
		w      *world
		docker v1alpha2.Provider
	)

	change := func(ctx context.Context, o client.Object, patch string) {
		GinkgoHelper()
		Expect(w.client.Patch(ctx, o, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))).To(Succeed())
	}
	replicas := func(ctx context.Context) func(Gomega) int32 {
		return func(g Gomega) int32 {
			d := dockerManager()
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())

			return *d.Spec.Replicas
		}
	}
	events := func(ctx context.Context) func() string {
		return func() string { return w.run(ctx, "kubectl", "get", "events", "-n", dockerNamespace) }
	}
	policy := func(ctx context.Context, drift v1alpha2.DriftPolicy) {
		GinkgoHelper()
		update(ctx, w, docker, func(p v1alpha2.Provider) { p.GetSpec().Release = &v1alpha2.ReleaseSpec{Drift: drift} })
		Eventually(w.read(ctx, docker)).Should(
			Satisfy(func(p v1alpha2.Provider) bool { return p.GetStatus().ObservedGeneration == p.GetGeneration() }))
	}
	expectInSync := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(w.read(ctx, docker)).Should(And(beReady("v1.0.0"), Not(haveConditionType(v1alpha2.DriftedCondition))))
	}

	BeforeAll(func(ctx SpecContext) {
		w = newWorld()
		w.start()
		core := w.install(ctx, samples, harness.Wanted{Label: "cluster-api"})
		docker = w.install(ctx, samples, harness.Wanted{Label: "infrastructure-docker", Version: "v1.0.0"})
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))
		Eventually(w.read(ctx, docker)).Should(beReady("v1.0.0"))
	})

	It("is not looked for right after an install", func(ctx SpecContext) {
		// Before the installation, they are looked for and not found. That of a Deployment may be for its health.
		own := func(r bed.Request) bool {
			return r.Verb == "get" && r.Resource == "services" && r.Code == http.StatusOK
		}
		Expect(w.requests(own)).To(BeEmpty())
	})

	DescribeTable(
		"is corrected immediately, reported in an event, and creates no revision",
		func(ctx SpecContext, o client.Object, patch, event string, restored func(client.Object) bool) {
			name := client.ObjectKeyFromObject(o)
			if patch == "" {
				Expect(w.client.Delete(ctx, o)).To(Succeed())
			} else {
				change(ctx, o, patch)
			}

			Eventually(func(g Gomega) {
				g.Expect(w.client.Get(ctx, name, o)).To(Succeed())
				g.Expect(o).To(Satisfy(restored))
			}).WithTimeout(soon).Should(Succeed())
			Eventually(events(ctx)).Should(ContainSubstring("Corrected drift: " + event))
			expectInSync(ctx)
			Expect(events(ctx)()).NotTo(ContainSubstring(": does not exist"), "Ready does not flicker")
			Expect(w.helm(ctx, "helm", "history", "infrastructure-docker", "-n", dockerNamespace)).To(HaveLen(1))
		},
		Entry(
			"a Deployment scaled to nothing",
			dockerManager(),
			`{"spec":{"replicas":0}}`,
			"Deployment "+dockerNamespace+"/capd-controller-manager: /spec/replicas",
			func(o client.Object) bool { return *o.(*appsv1.Deployment).Spec.Replicas == 1 },
		),
		Entry("a ClusterRole deleted", dockerRole(), "", "ClusterRole capd-manager-role is missing",
			func(o client.Object) bool { return len(o.(*rbacv1.ClusterRole).Rules) > 0 }),
		Entry(
			"a ServiceAccount's labels removed",
			&corev1.ServiceAccount{ObjectMeta: named(dockerNamespace, "capd-manager")},
			`{"metadata":{"labels":null}}`,
			"ServiceAccount "+dockerNamespace+"/capd-manager: /metadata/labels",
			func(o client.Object) bool { return o.GetLabels()["cluster.x-k8s.io/provider"] != "" },
		),
	)

	DescribeTable(
		"does not include changes that others may make",
		func(ctx SpecContext, o client.Object, patch string, kept func(client.Object) bool) {
			before := time.Now()

			change(ctx, o, patch)

			looked := func() []bed.Request {
				return w.requests(
					func(r bed.Request) bool { return r.Received.After(before) && r.Verb == "get" && r.Name == o.GetName() },
				)
			}
			Eventually(looked).ShouldNot(BeEmpty())
			expectInSync(ctx)
			Consistently(func(g Gomega) {
				g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
				g.Expect(o).To(Satisfy(kept))
			}).WithTimeout(quietPeriod).Should(Succeed())
			Expect(w.operatorWrites(func(r bed.Request) bool { return r.Received.After(before) && r.Name == o.GetName() })).To(
				BeEmpty())
		},
		Entry(
			"an annotation, a label and a container added",
			dockerManager(),
			`{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"}},`+
				`"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"sidecar:v1"}]}}}}`,
			func(o client.Object) bool {
				return o.GetLabels()["team"] == "a" && len(o.(*appsv1.Deployment).Spec.Template.Spec.Containers) == 2
			},
		),
		Entry(
			"an object excluded by its annotation",
			dockerRole(),
			`{"metadata":{"annotations":{"capstan.dev/drift":"Ignore"}},"rules":[]}`,
			func(o client.Object) bool { return len(o.(*rbacv1.ClusterRole).Rules) == 0 },
		),
	)

	It("is corrected again when an object is no longer excluded", func(ctx SpecContext) {
		role := dockerRole()
		change(ctx, role, `{"metadata":{"annotations":{"capstan.dev/drift":null}}}`)
		Eventually(func(g Gomega) {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
			g.Expect(role.Rules).NotTo(BeEmpty())
		}).WithTimeout(soon).Should(Succeed())
	})

	It("does not include the replicas of a Deployment with an autoscaler", func(ctx SpecContext) {
		scaler := &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: named(dockerNamespace, "capd"),
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
					APIVersion: "apps/v1",
					Kind:       "Deployment",
					Name:       "capd-controller-manager",
				},
				MaxReplicas: 9,
			},
		}
		Expect(w.client.Create(ctx, scaler)).To(Succeed())
		change(ctx, dockerManager(), `{"spec":{"replicas":3}}`)
		Consistently(replicas(ctx)).WithTimeout(quietPeriod).Should(BeEquivalentTo(3))
		expectInSync(ctx)
		Expect(w.client.Delete(ctx, scaler)).To(Succeed())
		change(ctx, dockerManager(), `{"spec":{"replicas":2}}`)
		Eventually(replicas(ctx)).WithTimeout(soon).Should(BeEquivalentTo(1))
	})

	It("is only reported with Warn", func(ctx SpecContext) {
		policy(ctx, v1alpha2.DriftWarn)
		change(ctx, dockerManager(), `{"spec":{"replicas":0}}`)
		Expect(w.client.Delete(ctx, dockerRole())).To(Succeed())
		Eventually(w.read(ctx, docker)).Should(beDrifted("ClusterRole capd-manager-role is missing",
			"Deployment "+dockerNamespace+"/capd-controller-manager: /spec/replicas",
		))
		Eventually(events(ctx)).Should(ContainSubstring("DriftDetected"))
		Consistently(replicas(ctx)).WithTimeout(quietPeriod).Should(BeZero())

		change(ctx, dockerManager(), `{"spec":{"replicas":1}}`)
		Eventually(w.read(ctx, docker)).Should(And(
			beDrifted("ClusterRole capd-manager-role is missing"),
			Not(beDrifted("/spec/replicas")),
		))
		policy(ctx, v1alpha2.DriftCorrect)
		expectInSync(ctx)
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(dockerRole()), dockerRole())).To(Succeed())
	})

	It("is only reported while the resource is suspended", func(ctx SpecContext) {
		suspend := func(suspended bool) {
			update(ctx, w, docker, func(p v1alpha2.Provider) { p.GetSpec().Suspend = suspended })
		}
		suspend(true)
		Eventually(w.read(ctx, docker)).Should(beReadyWith(v1alpha2.SuspendedReason))
		change(ctx, dockerManager(), `{"spec":{"replicas":0}}`)
		Eventually(w.read(ctx, docker)).Should(beDrifted("/spec/replicas"))
		Consistently(replicas(ctx)).WithTimeout(quietPeriod).Should(BeZero())
		suspend(false)
		Eventually(replicas(ctx)).WithTimeout(soon).Should(BeEquivalentTo(1))
		expectInSync(ctx)
	})

	It("is not looked for with Off", func(ctx SpecContext) {
		policy(ctx, v1alpha2.DriftOff)

		before := time.Now()

		change(ctx, dockerManager(), `{"spec":{"replicas":0}}`)
		Consistently(replicas(ctx)).WithTimeout(quietPeriod).Should(BeZero())
		Eventually(w.read(ctx, docker)).Should(notBeReady(v1alpha2.UnhealthyReason,
			"capd-controller-manager: has spec.replicas 0 instead of 1"))
		Expect(w.read(ctx, docker)(Default)).NotTo(haveConditionType(v1alpha2.DriftedCondition))
		Expect(w.requests(func(r bed.Request) bool {
			return r.Received.After(before) && r.Resource == "deployments" && r.Verb != "watch"
		})).To(BeEmpty())
		policy(ctx, v1alpha2.DriftCorrect)
		Eventually(replicas(ctx)).WithTimeout(soon).Should(BeEquivalentTo(1))
		expectInSync(ctx)
	})

	It("is corrected after a restart if it happened while the operator was down", func(ctx SpecContext) {
		Expect(w.operator.Stop()).To(Succeed())
		change(ctx, dockerManager(), `{"spec":{"replicas":0}}`)
		Expect(w.client.Delete(ctx, dockerRole())).To(Succeed())
		w.start()
		Eventually(replicas(ctx)).Should(BeEquivalentTo(1))
		Eventually(func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(dockerRole()), dockerRole()) }).Should(
			Succeed())
		expectInSync(ctx)
	})

	It("that keeps coming back is corrected less often, and immediately on request", func(ctx SpecContext) {
		patches := func() int {
			return len(
				w.operatorWrites(func(r bed.Request) bool { return r.Verb == "patch" && r.Name == "capd-controller-manager" }),
			)
		}
		before := patches()

		insisting, stop := context.WithCancel(ctx)
		defer stop()

		go insist(insisting, w)

		Eventually(
			w.read(ctx, docker),
		).Should(haveCondition(v1alpha2.DriftedCondition, metav1.ConditionTrue, v1alpha2.DriftNotCorrectedReason,
			"/spec/replicas (it is changed back each time it is corrected, by a program that "+
				"kubectl get --show-managed-fields names; the next attempt is at "))
		Expect(patches()-before).To(BeNumerically("<=", 6), "including corrections earlier in the same minute")
		Consistently(patches).WithTimeout(quietPeriod).Should(Equal(patches()))

		stop()
		update(ctx, w, docker, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: time.Now().String()})
		})
		Eventually(replicas(ctx)).WithTimeout(soon).Should(BeEquivalentTo(1))
		expectInSync(ctx)
	})

	It("is reported without credentials", func(ctx SpecContext) {
		const credential = "c2VjcmV0LW9mLXRoZS10ZXN0"

		wanted := harness.Wanted{
			Label:     "infrastructure-aws",
			Variables: map[string]string{"AWS_B64ENCODED_CREDENTIALS": credential},
		}
		aws := w.install(ctx, samples, wanted)
		Eventually(w.read(ctx, aws)).Should(beReady("v1.0.0"))
		secret := &corev1.Secret{ObjectMeta: named(aws.GetNamespace(), "capa-manager-bootstrap-credentials")}
		change(ctx, secret, `{"stringData":{"credentials":"another-secret"}}`)

		tell := func() string { return w.run(ctx, "kubectl", "get", "events", "-A", "-o", "json") }
		Eventually(tell).Should(
			ContainSubstring("Secret infrastructure-aws-system/capa-manager-bootstrap-credentials: /data/credentials"))
		Eventually(func(g Gomega) string {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			return string(secret.Data["credentials"])
		}).Should(Equal("secret-of-the-test"))

		log, err := os.ReadFile(w.log)
		Expect(err).NotTo(HaveOccurred())

		everything := strings.Join(
			[]string{tell(), string(log), w.run(ctx, "kubectl", "get", "infrastructureproviders", "-A", "-o", "yaml")},
			"\n",
		)
		for _, value := range []string{credential, "secret-of-the-test", "another-secret"} {
			Expect(everything).NotTo(ContainSubstring(value))
		}
	})
})

var _ = Describe("A manager with high availability", Ordered, func() {
	const name = "in-place"

	var (
		w      *world
		p      *v1alpha2.InfrastructureProvider
		before *appsv1.Deployment
	)

	manager := func(ctx context.Context, g Gomega) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: name, Name: name + "-controller-manager"}, d)).To(Succeed())

		return d
	}

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)

		published, selected := electing(name, "v1.0.0"), electing(name, "v1.1.0")
		published.components += "        livenessProbe: {httpGet: {path: /healthz, port: 9440}}\n"
		selected.components = strings.ReplaceAll(selected.components, "app: "+name, "app: selected")

		for _, o := range []client.Object{published.namespace(), published.configMap(), selected.configMap()} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		p = published.resource()
		p.Spec.Deployment = &v1alpha2.DeploymentSpec{HighAvailability: new(true)}
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})
	BeforeEach(func(ctx SpecContext) { before = manager(ctx, Default) })

	It("is corrected in place after a user has chosen another handler of a probe", func(ctx SpecContext) {
		edit := `[{"op": "replace", "path": "/spec/template/spec/containers/0/livenessProbe",
			"value": {"tcpSocket": {"port": 1}, "failureThreshold": 7}}]`
		Expect(w.client.Patch(ctx, before.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(edit)),
			client.FieldOwner("kubectl-edit"))).To(Succeed())

		Eventually(func(g Gomega) {
			Expect(manager(ctx, Default).Status.ReadyReplicas).To(BeNumerically(">", 0))
			g.Expect(w.events(ctx, p)(g)).To(ContainElement(And(
				HaveField("Reason", v1alpha2.FieldsRemovedReason), HaveField("Related.Name", before.Name),
				HaveField("Note", "Removed from Deployment in-place/in-place-controller-manager what is invalid beside the fields "+
					"of the release: /spec/template/spec/containers/0/livenessProbe/tcpSocket"))))
		}).Should(Succeed())

		after := manager(ctx, Default)
		probe := after.Spec.Template.Spec.Containers[0].LivenessProbe
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Generation).To(Equal(before.Generation+2), "the user's change, and the correction")
		Expect(probe.HTTPGet).NotTo(BeNil())
		Expect(probe.TCPSocket).To(BeNil())
		Expect(probe.FailureThreshold).To(BeEquivalentTo(7))
		Expect(w.operatorWrites(func(r bed.Request) bool { return r.Namespace == name && r.Verb == "delete" })).To(BeEmpty())
	})

	It("is recreated to change its selector, which an event says", func(ctx SpecContext) {
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.events(ctx, p)).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.RecreatedReason),
			HaveField("Note", And(HavePrefix("Deleted and recreated Deployment in-place/in-place-controller-manager to change "+
				"an immutable field: "), HaveSuffix("spec.selector: field is immutable"))))))
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(manager(ctx, Default).UID).NotTo(Equal(before.UID))
	})
})

// insist scales docker's Deployment to zero whenever it is not.
func insist(ctx context.Context, w *world) {
	for ctx.Err() == nil {
		d := dockerManager()
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(d), d); err == nil && *d.Spec.Replicas != 0 {
			_ = w.client.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`)))
		}
	}
}

// requests returns the operator's requests, except those about leases and events.
func (w *world) requests(keep func(bed.Request) bool) []bed.Request {
	GinkgoHelper()

	requests, err := w.bed.Requests(func(r bed.Request) bool {
		return r.User == harness.OperatorUser && !r.Lease() && r.Resource != "events" && keep(r)
	})
	Expect(err).NotTo(HaveOccurred())

	return requests
}

// haveConditionType matches a provider that has a condition, with any status.
func haveConditionType(conditionType string) OmegaMatcher {
	return WithTransform(
		func(p v1alpha2.Provider) []metav1.Condition { return p.GetConditions() },
		ContainElement(HaveField("Type", conditionType)),
	)
}
