package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("The sample providers", Ordered, everyKubernetes, func() {
	var (
		w            *world
		core, docker v1alpha2.Provider
	)

	dockerDeployment := func(ctx context.Context) *appsv1.Deployment {
		GinkgoHelper()

		list := &appsv1.DeploymentList{}
		Expect(w.client.List(ctx, list, client.InNamespace("infrastructure-docker-system"))).To(Succeed())
		Expect(list.Items).To(HaveLen(1))

		return &list.Items[0]
	}

	BeforeAll(func() {
		w = newWorld()
		w.start()
	})

	It("wait for core, and are installed when core is ready", func(ctx SpecContext) {
		docker = w.install(ctx, samples, harness.Wanted{Label: "infrastructure-docker", Version: "v1.0.0"})
		Eventually(w.read(ctx, docker)).Should(notBeReady(
			v1alpha2.WaitingForCoreProviderReadyReason,
			"waiting for the CoreProvider cluster-api",
		))
		Expect(w.helm(ctx, "helm", "list", "-A")).To(BeEmpty())

		core = w.install(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))
		Eventually(w.read(ctx, docker)).Should(beReady("v1.0.0"))
	})

	It("are not read before they are created", func() {
		requests, err := w.bed.Requests(func(r bed.Request) bool {
			return r.User == harness.OperatorUser && (r.Verb == "get" && r.Resource == "serviceaccounts" ||
				r.Verb == "list" && r.Resource == "deployments")
		})
		Expect(err).NotTo(HaveOccurred())
		// A list finds out what other programs have installed. That an object does not exist is found out by trying to create
		// it.
		Expect(bed.Count(requests, func(r bed.Request) string { return r.Verb + " " + r.Namespace })).To(And(
			HaveLen(1), HaveKeyWithValue("list ", And(BeNumerically(">=", 2), BeNumerically("<=", 4)))))
	})

	It("are releases that helm lists", func(ctx SpecContext) {
		Expect(w.helm(ctx, "helm", "list", "-A")).To(ConsistOf(
			And(
				HaveField("Name", "cluster-api"),
				HaveField("Chart", "cluster-api-1.0.0"),
				HaveField("AppVersion", "v1.0.0"),
				HaveField("Status", "deployed"),
			),
			And(
				HaveField("Name", "infrastructure-docker"),
				HaveField("Chart", "infrastructure-docker-1.0.0"),
				HaveField("AppVersion", "v1.0.0"),
				HaveField("Status", "deployed"),
			),
		))
	})

	It("show their version, revision and health in kubectl get", func(ctx SpecContext) {
		Expect(w.run(ctx, "kubectl", "get", "infrastructureproviders", "-A")).To(
			MatchRegexp(`docker +v1\.0\.0 +v1\.0\.0 +1 +True +\S+ +v1\.0\.0 is healthy\n`))
	})

	It("report in events what happened", func(ctx SpecContext) {
		Eventually(func(g Gomega) {
			g.Expect(w.run(ctx, "kubectl", "get", "events", "-n", docker.GetNamespace())).To(
				And(
					ContainSubstring("WaitingForCoreProviderReady"),
					ContainSubstring("v1.0.0 is healthy"),
				))
		}).Should(Succeed())
	})

	It("are upgraded in place: the Deployment gets a new image, dropped objects are deleted", func(ctx SpecContext) {
		before := dockerDeployment(ctx)
		newer, err := harness.Load(ctx, samples, harness.Wanted{Label: "infrastructure-docker", Version: "v1.1.0"})
		Expect(err).NotTo(HaveOccurred())
		Expect(newer.Prepare(ctx, w.client)).To(Succeed())
		Consistently(w.read(ctx, docker)).WithTimeout(quietPeriod).
			Should(beReady("v1.0.0"), "a new ConfigMap does not cause an upgrade")

		update(ctx, w, docker, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, docker)).Should(beReady("v1.1.0"))

		after := dockerDeployment(ctx)
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Spec.Template.Spec.Containers[0].Image).NotTo(Equal(before.Spec.Template.Spec.Containers[0].Image))
		Expect(w.helm(ctx, "helm", "history", "infrastructure-docker", "-n", docker.GetNamespace())).To(HaveExactElements(
			And(HaveField("Status", "superseded"), HaveField("AppVersion", "v1.0.0")),
			And(HaveField("Status", "deployed"), HaveField("AppVersion", "v1.1.0")),
		))
		Expect(docker.GetStatus().History).To(HaveExactElements(
			And(
				HaveField("Number", 2),
				HaveField("Version", "v1.1.0"),
				HaveField("ChartDigest", docker.GetStatus().Chart.Digest),
			),
			And(HaveField("Number", 1), HaveField("Version", "v1.0.0")),
		))
	})

	It("are upgraded in place when a variable changes", func(ctx SpecContext) {
		before := dockerDeployment(ctx)
		update(ctx, w, docker, func(p v1alpha2.Provider) {
			p.GetSpec().Variables = map[string]string{"EXP_MACHINE_POOL": "changed"}
		})
		Eventually(func(g Gomega) {
			g.Expect(w.read(ctx, docker)(g).GetStatus().Release).To(HaveField("Revision", 3))
			g.Expect(docker).To(beReady("v1.1.0"))
		}).Should(Succeed())

		after := dockerDeployment(ctx)
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Spec.Template.Spec.Containers[0].Args).To(ContainElement(ContainSubstring("changed")))
	})

	It("become unhealthy with their objects, and healthy again", func(ctx SpecContext) {
		deployment := dockerDeployment(ctx)
		patch := client.RawPatch(
			"application/merge-patch+json",
			[]byte(
				`{"spec":{"template":{"spec":{"nodeSelector":{"no":"such-node"}}},"strategy":{"type":"Recreate",`+
					`"rollingUpdate":null}}}`,
			),
		)
		Expect(w.client.Patch(ctx, deployment, patch)).To(Succeed())
		Eventually(w.read(ctx, docker)).Should(notBeReady(
			v1alpha2.UnhealthyReason,
			"Unschedulable: ", "(pod "+deployment.Name,
		))

		back := client.RawPatch(
			"application/merge-patch+json",
			[]byte(`{"spec":{"template":{"spec":{"nodeSelector":null}}}}`),
		)
		Expect(w.client.Patch(ctx, deployment, back)).To(Succeed())
		Eventually(w.read(ctx, docker)).Should(beReady("v1.1.0"))
	})

	It("can be highly available: pods that end keep answering for a while", func(ctx SpecContext) {
		update(ctx, w, docker, func(p v1alpha2.Provider) {
			p.GetSpec().Deployment = &v1alpha2.DeploymentSpec{HighAvailability: new(true)}
		})
		Eventually(func(g Gomega) {
			g.Expect(w.read(ctx, docker)(g).GetStatus().Release).To(HaveField("Revision", 4))
			g.Expect(docker).To(beReady("v1.1.0"))
		}).Should(Succeed())

		deployment := dockerDeployment(ctx)
		Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(2))
		Expect(deployment.Spec.Template.Spec.Containers).To(HaveEach(
			HaveField("Lifecycle.PreStop.Sleep.Seconds", BeEquivalentTo(15))), "an API server removes what it does not know")
	})

	It("cause no requests while nothing happens", func(ctx SpecContext) {
		asked := func() int { return len(w.requests(func(r bed.Request) bool { return r.Verb != "watch" })) }

		Consistently(asked).WithTimeout(idleWatch).Should(Equal(settled(asked)))
	})

	It("reject a second resource for the same provider, which can be deleted without side effects", func(ctx SpecContext) {
		Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "twin"}})).To(Succeed())
		twin := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "docker"}}
		docker.GetSpec().DeepCopyInto(&twin.Spec)
		Expect(w.client.Create(ctx, twin)).To(Succeed())
		Eventually(w.read(ctx, twin)).Should(failPreflight(
			v1alpha2.MoreThanOneProviderInstanceExistsReason,
			"namespace infrastructure-docker-system",
		))
		Expect(w.client.Delete(ctx, twin)).To(Succeed())
		Eventually(gone(ctx, w, twin)).Should(BeTrue())
		Expect(w.read(ctx, docker)(Default)).To(beReady("v1.1.0"))
	})

	It("block the deletion of core until the others are deleted", func(ctx SpecContext) {
		Expect(w.client.Delete(ctx, core)).To(Succeed())
		Eventually(w.read(ctx, core)).Should(notBeReady(
			v1alpha2.DeletionBlockedReason,
			"InfrastructureProvider infrastructure-docker-system/docker",
		))
		Expect(w.helm(ctx, "helm", "list", "-A")).To(HaveLen(2))
	})

	It("leave only CRDs and the namespace when they are deleted", func(ctx SpecContext) {
		Expect(w.client.Delete(ctx, docker)).To(Succeed())
		Eventually(gone(ctx, w, docker)).Should(BeTrue())
		Eventually(gone(ctx, w, core)).Should(BeTrue(), "core was waiting only for the last provider")

		Expect(w.helm(ctx, "helm", "list", "-A", "--all")).To(BeEmpty())

		of := client.MatchingLabels{"cluster.x-k8s.io/provider": "infrastructure-docker"}
		for _, list := range []client.ObjectList{
			&appsv1.DeploymentList{},
			&corev1.ServiceList{},
			&rbacv1.ClusterRoleList{},
			&rbacv1.ClusterRoleBindingList{},
		} {
			Expect(w.client.List(ctx, list, of)).To(Succeed())
			Expect(list).To(HaveField("Items", BeEmpty()))
		}

		crds := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(w.client.List(ctx, crds, of)).To(Succeed())
		Expect(crds.Items).NotTo(BeEmpty())
		Expect(w.client.Get(ctx, client.ObjectKey{Name: docker.GetNamespace()}, &corev1.Namespace{})).To(Succeed())
	})
})

// update changes a resource, and retries on conflicts.
func update(ctx context.Context, w *world, p v1alpha2.Provider, change func(v1alpha2.Provider)) {
	GinkgoHelper()
	Expect(bedtest.Edit(ctx, w.client, p, change)).To(Succeed())
}

// gone reports whether a resource no longer exists.
func gone(ctx context.Context, w *world, o client.Object) func() bool {
	return func() bool { return apierrors.IsNotFound(w.client.Get(ctx, client.ObjectKeyFromObject(o), o)) }
}
