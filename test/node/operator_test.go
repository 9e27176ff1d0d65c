package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

const (
	namespace = "capstan-system"
	release   = "capstan"
	lease     = "capstan.operator.cluster.x-k8s.io"
	// infraNamespace is the namespace of the provider that is upgraded.
	infraNamespace = "infrastructure-sample-system"
)

var _ = Describe("The operator on a real node", Ordered, func() {
	var (
		core, infra v1alpha2.Provider
		repository  string
	)

	BeforeAll(func() {
		repository = GinkgoT().TempDir()
		for _, s := range []sample{
			{"cluster-api", "v1.0.0", "capi-system", nil},
			{"infrastructure-sample", "v1.0.0", infraNamespace, nil},
			{"infrastructure-sample", "v1.1.0", infraNamespace, nil},
			{"infrastructure-sample", "v1.2.0", infraNamespace, nil},
			{"infrastructure-sample", "v1.3.0", infraNamespace, []string{"--ready-after=10s"}},
		} {
			Expect(s.write(repository)).To(Succeed())
		}
	})
	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			AddReportEntry("pods", run(ctx, "kubectl", "get", "pods,capstan", "-A", "-o", "wide"))
			AddReportEntry("events", run(ctx, "kubectl", "get", "events", "-A", "--sort-by=.lastTimestamp"))
			AddReportEntry("node", nodes[0].Logs())
		}
	})

	It("runs in two ready pods", func(ctx SpecContext) {
		run(ctx, "helm", "install", release, filepath.Join(root, "charts/capstan"), "-n", namespace, "--create-namespace",
			"--set", "image.tag="+operatorVersion+",image.pullPolicy=Never,podDisruptionBudget.enabled=true")
		Eventually(func(g Gomega) {
			deployment := get(ctx, g, &appsv1.Deployment{}, namespace, release)
			g.Expect(deployment.Status.ReadyReplicas).To(BeEquivalentTo(2))
		}).Should(Succeed())

		for _, pod := range pods(ctx, namespace) {
			Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeZero(), pod.Name)
		}
	})

	It("has one leader", func(ctx SpecContext) {
		Eventually(func(g Gomega) { g.Expect(leader(ctx, g)).To(HavePrefix(release + "-")) }).Should(Succeed())
	})

	It("serves metrics through its Service", func(ctx SpecContext) {
		run(ctx, "kubectl", "create", "clusterrolebinding", "metrics-reader", "--clusterrole", namespace+"-metrics-reader",
			"--serviceaccount", "default:default")
		token := strings.TrimSpace(run(ctx, "kubectl", "create", "token", "default", "-n", "default"))
		scraper := http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the operator's own certificate
		}}

		Eventually(func(g Gomega) {
			service := get(ctx, g, &corev1.Service{}, namespace, release+"-metrics")
			request, err := http.NewRequestWithContext(
				ctx, http.MethodGet, fmt.Sprintf("https://%s:8443/metrics", service.Spec.ClusterIP), nil)
			g.Expect(err).NotTo(HaveOccurred())
			request.Header.Set("Authorization", "Bearer "+token)
			page, err := scraper.Do(request)
			g.Expect(err).NotTo(HaveOccurred())

			defer page.Body.Close()

			text, err := io.ReadAll(page.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(text)).To(ContainSubstring(`capstan_build_info{version="` + operatorVersion + `"} 1`))
		}).Should(Succeed())
	})

	It("installs providers, and their pods run", func(ctx SpecContext) {
		core = install(ctx, repository, "cluster-api")

		infra = install(ctx, repository, "infrastructure-sample")
		for _, p := range []v1alpha2.Provider{core, infra} {
			Eventually(version(ctx, p)).Should(Equal("v1.0.0"))
		}

		Expect(images(ctx)).To(HaveEach(managerImage + ":v1.0.0"))
	})

	It("upgrades a provider by a rolling update without downtime", func(ctx SpecContext) {
		before := deployment(ctx)
		ask(ctx, infra, repository, "v1.1.0", "")
		Eventually(func() string {
			Expect(deployment(ctx).Status.AvailableReplicas).To(BeNumerically(">=", 2))
			return version(ctx, infra)()
		}).Should(Equal("v1.1.0"))
		Expect(deployment(ctx).UID).To(Equal(before.UID))
		Eventually(func() []string { return images(ctx) }).Should(And(HaveLen(2), HaveEach(managerImage+":v1.1.0")))
	})

	It("corrects a probe that a user has changed in place, without downtime", func(ctx SpecContext) {
		before := deployment(ctx)
		edit := `[{"op": "replace", "path": "/spec/template/spec/containers/0/readinessProbe",
			"value": {"tcpSocket": {"port": "health"}, "periodSeconds": 1}}]`
		patch := client.RawPatch(types.JSONPatchType, []byte(edit))
		Expect(admin.Patch(ctx, before.DeepCopy(), patch)).To(Succeed())

		Eventually(func(g Gomega) {
			now := deployment(ctx)
			Expect(now.UID).To(Equal(before.UID))
			Expect(now.Status.AvailableReplicas).To(BeNumerically(">=", 2))

			probe := now.Spec.Template.Spec.Containers[0].ReadinessProbe
			g.Expect(probe.HTTPGet).NotTo(BeNil())
			g.Expect(probe.TCPSocket).To(BeNil())
			g.Expect(now.Generation).To(Equal(before.Generation+2), "the user's change, and the correction")
			g.Expect(now.Status.ObservedGeneration).To(Equal(now.Generation))
			g.Expect(now.Status.UpdatedReplicas).To(Equal(now.Status.Replicas))
		}).Should(Succeed())
		Eventually(version(ctx, infra)).Should(Equal("v1.1.0"))
	})

	It("rolls back a version whose containers exit, and reports why", func(ctx SpecContext) {
		ask(ctx, infra, repository, "v1.2.0", `"release":{"timeout":"15s","retries":0}`)
		Eventually(func(g Gomega) {
			g.Expect(deployment(ctx).Status.AvailableReplicas).To(BeNumerically(">=", 2))
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(infra), infra)).To(Succeed())
			g.Expect(conditions.IsStalled(infra)).To(BeTrue())
			g.Expect(conditions.GetMessage(infra, v1alpha2.ReadyCondition)).To(ContainSubstring("v1.2.0"))
		}).Should(Succeed())
		Expect(
			run(ctx, "helm", "history", "infrastructure-sample", "-n", infraNamespace),
		).To(MatchRegexp(`(?s)failed.*CrashLoopBackOff|exit.*Rollback to`))
		Eventually(func() []string { return images(ctx) }).Should(And(HaveLen(2), HaveEach(managerImage+":v1.1.0")))
	})

	It("finishes an upgrade in the other pod when the leader is killed", func(ctx SpecContext) {
		ask(ctx, infra, repository, "v1.3.0", `"release":{"timeout":"3m"}`)
		Eventually(func() []string { return images(ctx) }).Should(ContainElement(managerImage + ":v1.3.0"))

		var killed string

		Eventually(func(g Gomega) { killed = leader(ctx, g) }).Should(Succeed())
		Expect(version(ctx, infra)()).NotTo(Equal("v1.3.0"), "the upgrade is not finished")

		begin := time.Now()

		kill(ctx, killed)
		Eventually(func(g Gomega) { g.Expect(leader(ctx, g)).NotTo(Equal(killed)) }).Should(Succeed())

		took := time.Since(begin)
		AddReportEntry(
			"time to take over",
			fmt.Sprintf(
				"%.1f s after the leader was killed, %s had taken over from %s",
				took.Seconds(),
				leader(ctx, Default),
				killed,
			),
		)
		GinkgoWriter.Printf("time to take over: %.1f s\n", took.Seconds())
		Eventually(version(ctx, infra)).Should(Equal("v1.3.0"))
		Expect(took).To(BeNumerically("<", 30*time.Second))
		Expect(
			run(ctx, "helm", "status", "infrastructure-sample", "-n", infraNamespace),
		).To(ContainSubstring("STATUS: deployed"))
	})

	It("installs a provider from an image volume", func(ctx SpecContext) {
		values := filepath.Join(GinkgoT().TempDir(), "values.yaml")
		Expect(os.WriteFile(values, []byte(imageVolumes(volumeImage)), 0o600)).To(Succeed())
		run(ctx, "helm", "upgrade", release, filepath.Join(root, "charts/capstan"), "-n", namespace, "--reuse-values",
			"--values", values)

		key := types.NamespacedName{Namespace: mounted.namespace, Name: "mounted"}
		Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}})).To(Succeed())

		p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		p.Spec.Version = mounted.version
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: "/providers"}
		Expect(admin.Create(ctx, p)).To(Succeed())
		Eventually(version(ctx, p)).Should(Equal(mounted.version))
	})

	It("made no request that its role does not allow", func() {
		refused, err := cluster.Requests(func(r bed.Request) bool {
			return r.User == "system:serviceaccount:"+namespace+":"+release && r.Code == http.StatusForbidden
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(refused).To(BeEmpty())
	})
})

func get[T client.Object](ctx context.Context, g Gomega, into T, namespace, name string) T {
	g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)).To(Succeed())
	return into
}

// imageVolumes returns the values of air-gap.md, which mount an image with the releases of providers.
func imageVolumes(image string) string {
	GinkgoHelper()

	page, err := os.ReadFile(filepath.Join(root, "docs/air-gap.md"))
	Expect(err).NotTo(HaveOccurred())

	_, rest, found := strings.Cut(string(page), "```yaml\nvolumes:\n")
	Expect(found).To(BeTrue())

	block, _, _ := strings.Cut(rest, "```")
	values := "volumes:\n" + strings.Replace(block, "registry.example.com/capi/providers:v1", image, 1)
	Expect(values).To(ContainSubstring(image))

	return values
}

// deployment returns the Deployment of the provider that is upgraded.
func deployment(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	return get(ctx, Default, &appsv1.Deployment{}, infraNamespace, "manager")
}

func pods(ctx context.Context, namespace string) []corev1.Pod {
	GinkgoHelper()

	list := &corev1.PodList{}
	Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())

	return list.Items
}

// images returns the images of the pods of the provider that is upgraded.
func images(ctx context.Context) []string {
	GinkgoHelper()

	var all []string
	for _, pod := range pods(ctx, infraNamespace) {
		all = append(all, pod.Spec.Containers[0].Image)
	}

	return all
}

// leader returns the pod that is the leader.
func leader(ctx context.Context, g Gomega) string {
	holder := get(ctx, g, &coordinationv1.Lease{}, namespace, lease).Spec.HolderIdentity
	g.Expect(holder).NotTo(BeNil())
	pod, _, _ := strings.Cut(*holder, "_")
	g.Expect(pod).NotTo(BeEmpty())

	return pod
}

// install loads version v1.0.0 of a sample and creates its resource.
func install(ctx context.Context, repository, label string) v1alpha2.Provider {
	GinkgoHelper()

	r, err := harness.Load(ctx, repository, harness.Wanted{Label: label, Version: "v1.0.0"})
	Expect(err).NotTo(HaveOccurred())
	p, err := r.Install(ctx, admin)
	Expect(err).NotTo(HaveOccurred())

	return p
}

// ask makes a version available and requests it in the resource, with more of the spec as JSON.
func ask(ctx context.Context, p v1alpha2.Provider, repository, version, more string) {
	GinkgoHelper()

	r, err := harness.Load(ctx, repository, harness.Wanted{Label: v1alpha2.Label(p), Version: version})
	Expect(err).NotTo(HaveOccurred())
	Expect(r.Prepare(ctx, admin)).To(Succeed())

	patch := fmt.Sprintf(`{"spec":{"version":%q%s}}`, version, strings.TrimSuffix(","+more, ","))
	Expect(admin.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// version returns the version of a ready provider, or the message of its condition.
func version(ctx context.Context, p v1alpha2.Provider) func() string {
	return func() string {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error()
		}

		if !conditions.IsReady(p) || p.GetStatus().ObservedGeneration != p.GetGeneration() {
			return conditions.GetMessage(p, v1alpha2.ReadyCondition)
		}

		return *p.GetStatus().InstalledVersion
	}
}
