package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// The commands know a provider by its resource and its cluster: the same label exists here and there.
var _ = Describe("On a hub with the providers of another cluster, capstan", Ordered, func() {
	const ofBerlin = "in the cluster of Secret berlin/there"

	var (
		w, there *world
		cli      commandLine
		config   string
		// remote are the providers in the other cluster, and local those in the hub; core comes first.
		remote, local []v1alpha2.Provider
	)

	BeforeAll(func(ctx SpecContext) {
		w, there = newWorld(), newWorld()
		cli = newCommandLine(w)
		config = clusterctlConfig(samples, "cluster-api", "infrastructure-docker")

		w.createOperatorDeployment(ctx)
		w.start("--config=" + config)

		remote = []v1alpha2.Provider{
			only(v1alpha2.CoreProviderType, "berlin", "cluster-api", "v1.0.0"),
			only(v1alpha2.InfrastructureProviderType, "berlin", "docker", "v1.0.0"),
		}
		local = []v1alpha2.Provider{
			only(v1alpha2.CoreProviderType, "capi-system", "cluster-api", ""),
			only(v1alpha2.InfrastructureProviderType, "capd-system", "docker", ""),
		}

		for _, p := range remote {
			w.sendTo(ctx, there, p, "there")
			Expect(w.client.Create(ctx, p)).To(Succeed())
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		}
	})

	// kept checks that providers still have the versions and revisions that they had.
	kept := func(ctx SpecContext, providers []v1alpha2.Provider) (check func()) {
		GinkgoHelper()

		state := func(p v1alpha2.Provider) string {
			GinkgoHelper()
			Expect(w.client.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())

			return fmt.Sprint(p.GetUID(), *p.GetStatus().Release)
		}

		var before []string
		for _, p := range providers {
			before = append(before, state(p))
		}

		return func() {
			GinkgoHelper()

			for i, p := range providers {
				Expect(state(p)).To(Equal(before[i]), v1alpha2.FullName(p))
			}
		}
	}

	It("init installs the providers here that exist only there", func(ctx SpecContext) {
		unchanged := kept(ctx, remote)

		Expect(cli.succeed(ctx, "init", "--infrastructure", "docker:v1.0.0", "--bootstrap", "-", "--control-plane", "-",
			"--cert-manager", "none", "--config", config)).To(And(
			ContainSubstring("CoreProvider capi-system/cluster-api created\n"),
			ContainSubstring("InfrastructureProvider capd-system/docker created\n"),
		))

		for _, p := range local {
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		}

		unchanged()
		Expect(w.helm(ctx, "helm", "list", "-A")).To(HaveLen(2))
		Expect(there.helm(ctx, "helm", "list", "-A")).To(HaveLen(2))
	})

	It("status shows those of both", func(ctx SpecContext) {
		Expect(strings.Count(cli.succeed(ctx, "status"), "v1.0.0 is healthy")).To(Equal(4))
		Expect(cli.succeed(ctx, "status", "docker", "-n", "berlin")).To(ContainSubstring(
			"\n├─ in another cluster, by the kubeconfig in Secret berlin/there"))
		Expect(cli.succeed(ctx, "status", "docker", "-n", "capd-system")).NotTo(ContainSubstring("another cluster"))
		cli.fail(ctx, "status", "docker").To(ContainSubstring("docker is ambiguous: "))
	})

	It("upgrade plan has a plan for each", func(ctx SpecContext) {
		const table = "PROVIDER                INSTALLED   UPGRADE TO   CONTRACT\n" +
			"cluster-api             v1.0.0      -            v1beta2\n" +
			"infrastructure-docker   v1.0.0      v1.1.0       v1beta2\n" +
			"To upgrade the providers, run `capstan upgrade apply --contract v1beta2"

		Expect(cli.succeed(ctx, "upgrade", "plan", "--config", config)).To(Equal(
			"Contract v1beta2\n" + table + " --config " + config + "`.\n\n" +
				"Contract v1beta2 " + ofBerlin + "\n" + table + " --namespace berlin --config " + config + "`.\n"))
	})

	It("upgrade apply changes those of one", func(ctx SpecContext) {
		unchanged := kept(ctx, local)

		cli.fail(ctx, "upgrade", "apply", "infrastructure-docker:v1.1.0").To(
			ContainSubstring("infrastructure-docker is ambiguous"))
		cli.succeed(ctx, "upgrade", "apply", "--contract", "v1beta2", "--namespace", "berlin", "--config", config)
		Eventually(w.read(ctx, remote[1])).Should(beReady("v1.1.0"))
		unchanged()

		By("upgrading what is left")

		unchanged = kept(ctx, remote)

		Expect(cli.succeed(ctx, "upgrade", "apply", "--contract", "v1beta2", "--config", config)).To(And(
			ContainSubstring("InfrastructureProvider capd-system/docker: upgrading to v1.1.0\n"),
			MatchRegexp(`\n1 of 1 provider ready after \S+s; no newer version of cluster-api, infrastructure-docker\n$`),
			Not(ContainSubstring("berlin")),
		))
		Eventually(w.read(ctx, local[1])).Should(beReady("v1.1.0"))
		unchanged()
	})

	It("upgrade plan leaves out what is installed in neither", func(ctx SpecContext) {
		waiting := only(v1alpha2.InfrastructureProviderType, "paris", "docker", "v1.0.0")
		w.sendTo(ctx, there, waiting, "absent")

		waiting.GetSpec().KubeConfig.SecretRef.Name = "missing"
		Expect(w.client.Create(ctx, waiting)).To(Succeed())
		Eventually(w.read(ctx, waiting)).Should(failPreflight(v1alpha2.KubeConfigErrorReason))

		out, failure, code := cli.run(ctx, "upgrade", "plan", "--config", config)
		Expect(code).To(BeZero())
		Expect(out).NotTo(ContainSubstring("paris"))
		Expect(failure).To(HavePrefix("Warning: InfrastructureProvider paris/docker is left out: "))

		Expect(w.client.Delete(ctx, waiting)).To(Succeed())
		Eventually(gone(ctx, w, waiting)).Should(BeTrue())
	})

	It("adopt takes over what is installed here, whatever is there", func(ctx SpecContext) {
		w.letGo(ctx, local[1])
		Eventually(gone(ctx, w, local[1])).Should(BeTrue())
		Eventually(func() map[string]string {
			return w.itemOf(ctx, "capd-system", "infrastructure-docker").GetLabels()
		}).ShouldNot(HaveKey(v1alpha2.ManagedByLabel))

		unchanged := kept(ctx, append([]v1alpha2.Provider{local[0]}, remote...))

		Expect(cli.succeed(ctx, "adopt", "--config", config)).To(And(
			HavePrefix("1 provider installed by clusterctl\n"),
			ContainSubstring("\nInfrastructureProvider capd-system/docker created\n"),
		))
		Eventually(w.read(ctx, local[1])).Should(beReady("v1.1.0"))
		unchanged()
	})

	It("delete removes those of one", func(ctx SpecContext) {
		Expect(cli.succeed(ctx, "delete", "docker", "--namespace", "berlin", "--dry-run")).To(
			ContainSubstring("its release in another cluster"))

		out, _, code := cli.run(ctx, "delete", "cluster-api", "--namespace", "capi-system", "--dry-run")
		Expect(code).To(Equal(1))
		Expect(out).To(ContainSubstring("core is removed last; select as well: infrastructure-docker\n"))

		unchanged := kept(ctx, local)

		cli.succeed(ctx, "delete", "cluster-api", "docker", "--namespace", "berlin")
		Expect(there.helm(ctx, "helm", "list", "-A")).To(BeEmpty())
		unchanged()

		By("deleting what is here")
		cli.succeed(ctx, "delete", "--all", "--yes")
		Expect(w.helm(ctx, "helm", "list", "-A")).To(BeEmpty())
	})
})
