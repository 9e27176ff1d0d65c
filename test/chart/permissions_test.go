package chart

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/config"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// rare are permissions in the operator's role that a short run with sample providers does not use,
// with the reason for each.
var rare = map[string]string{
	"patch events":               "core events, for API servers and libraries that do not take those of events.k8s.io",
	"create events":              "likewise",
	"patch events.k8s.io/events": "an event that repeats is counted, and not made again",
	"get serviceaccounts":        "their pull secrets, for providers from registries",
	"watch pods":                 "a list: why a manager does not run",
	"get secrets":                "what resources without a ServiceAccount name",
	"get configmaps":             "likewise",

	"get operator.cluster.x-k8s.io/coreproviders":           "if the cache lags behind a write of its own",
	"get operator.cluster.x-k8s.io/infrastructureproviders": "likewise",

	"update capstan.dev/operatordata": "an admission policy recognizes other operators by it",
}

var _ = Describe("The operator's own permissions", Ordered, func() {
	var (
		operator          *harness.Operator
		core, docker, aws v1alpha2.Provider
	)

	address := bedtest.FreeAddress(GinkgoT())

	BeforeAll(func(ctx SpecContext) {
		run(ctx, "helm", "install", release, light, "-n", namespace, "--create-namespace",
			"--set", "rbac.installProviders=false,replicas=0")
		installInventory(ctx)
		operator = startOperator(ctx, "--upgrade-crds", "--metrics-bind-address="+address)
	})
	AfterAll(func(ctx SpecContext) {
		run(ctx, "helm", "uninstall", release, "-n", namespace)
		removeAll(ctx)
	})

	It("suffice to install and upgrade providers as ServiceAccounts", func(ctx SpecContext) {
		core = install(ctx, harness.Wanted{Label: "cluster-api", Version: "v1.0.0"})
		docker = install(ctx, harness.Wanted{Label: "infrastructure-docker", Version: "v1.0.0"})

		aws = install(ctx, harness.Wanted{Label: "infrastructure-aws", Version: "v1.0.0", Variables: harness.AWSVariables})
		for _, p := range []v1alpha2.Provider{core, docker, aws} {
			Eventually(version(ctx, p)).Should(Equal("v1.0.0"))
		}

		next, err := harness.Load(ctx, samples, harness.Wanted{Label: "infrastructure-docker", Version: "v1.1.0"})
		Expect(err).NotTo(HaveOccurred())
		Expect(next.Prepare(ctx, admin)).To(Succeed())
		grantAccount(ctx, docker, "--version", "v1.1.0")
		Expect(
			admin.Patch(ctx, docker, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"version":"v1.1.0"}}`))),
		).To(Succeed())
		Eventually(version(ctx, docker)).Should(Equal("v1.1.0"))
	})

	It("let Prometheus read all metrics of the dashboard and the alerts", func(ctx SpecContext) {
		seen := scrape(ctx, address, accountToken(ctx, "prometheus", namespace+"-metrics-reader"))
		for _, expression := range expressions() {
			seen.expectAnswers(expression)
		}

		of := map[string]string{"type": "InfrastructureProvider", "namespace": docker.GetNamespace(), "name": "docker"}
		Expect(seen.value("capstan_provider_info", of, "version", "v1.1.0", "contract", "v1beta2")).To(Equal(1.0))
		Expect(seen.value("capstan_provider_condition", of, "condition", "Ready")).To(Equal(1.0))
		Expect(seen.value("capstan_provider_release_revision", of)).To(Equal(2.0))
		Expect(seen.value("capstan_release_actions_total", of, "action", "install", "result", "succeeded")).To(Equal(1.0))
		Expect(seen.value("capstan_release_actions_total", of, "action", "upgrade", "result", "succeeded")).To(Equal(1.0))
		Expect(seen.value("capstan_release_actions_total", of, "action", "upgrade", "result", "failed")).To(BeZero())
		Expect(seen.value("capstan_chart_bytes", of)).To(BeNumerically(">", 1000))
		Expect(seen.value("capstan_fetch_bytes_total", nil, "source", "selector")).To(BeNumerically(">", 1000))
		Expect(seen.value("capstan_build_info", nil, "version", "dev")).To(Equal(1.0))
	})

	It("suffice to remove the provider", func(ctx SpecContext) {
		for _, p := range []v1alpha2.Provider{aws, docker, core} {
			Expect(admin.Delete(ctx, p)).To(Succeed())
			Eventually(
				func() error { return admin.Get(ctx, client.ObjectKeyFromObject(p), p) },
			).Should(MatchError(ContainSubstring("not found")))
		}
	})

	It("are never exceeded, and all of them are used", func(ctx SpecContext) {
		Expect(operator.Stop()).To(Succeed()) // a watch is logged when it ends

		requests, err := cluster.Requests(func(r bed.Request) bool { return r.User == operatorUser && r.Resource != "" })
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).NotTo(BeEmpty())

		for _, r := range requests {
			Expect(r.Code).NotTo(Equal(403), "%s %s", r.Verb, r.URI)
		}

		used := bed.Count(requests, func(r bed.Request) string { return permission(r.Verb, r.Group, resource(r)) })

		for _, granted := range ownPermissions(ctx) {
			// a watch lists first if the API server cannot stream
			watched := strings.Replace(granted, "list ", "watch ", 1)
			if _, known := rare[watched]; !known {
				Expect(used).To(Or(HaveKey(granted), HaveKey(watched)),
					"the role has a permission that nothing needs: remove its marker in controllers/rbac.go")
			}
		}
	})
})

var _ = Describe("With namespaces to watch, the operator's own permissions", Ordered, func() {
	const watched = "cluster-api-system"

	It("for Secrets, ConfigMaps and clusterctl's inventory are limited to these, and suffice", func(ctx SpecContext) {
		begin := time.Now()

		installInventory(ctx)

		Expect(
			client.IgnoreAlreadyExists(admin.Create(ctx, &corev1.Namespace{ObjectMeta: objectName(watched)})),
		).To(Succeed())
		run(ctx, "helm", "install", release, light, "-n", namespace, "--create-namespace",
			"--set", "rbac.installProviders=false,replicas=0,flags.watch-namespaces="+watched)
		DeferCleanup(func(ctx SpecContext) {
			run(ctx, "helm", "uninstall", release, "-n", namespace)
			removeAll(ctx)
		})

		for _, granted := range ownPermissions(ctx) {
			Expect(granted).NotTo(Or(ContainSubstring("secrets"), ContainSubstring("configmaps"),
				MatchRegexp("^(get|create|patch|delete) clusterctl")))
		}

		operator := startOperator(ctx, "--watch-namespaces="+watched)
		core := install(ctx, harness.Wanted{Label: "cluster-api", Version: "v1.0.0"})
		Eventually(version(ctx, core)).Should(Equal("v1.0.0"))
		Eventually(inventory(ctx)).Should(Equal("cluster-api"))

		Expect(admin.Delete(ctx, core)).To(Succeed())
		Eventually(
			func() error { return admin.Get(ctx, client.ObjectKeyFromObject(core), core) },
		).Should(MatchError(ContainSubstring("not found")))
		Eventually(inventory(ctx)).Should(BeEmpty())

		Expect(operator.Stop()).To(Succeed())

		refused, err := cluster.Requests(func(r bed.Request) bool {
			return r.User == operatorUser && r.Resource != "" && r.Code == 403 && r.Received.After(begin)
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(refused).To(BeEmpty())
	})
})

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

func permission(verb, group, resource string) string {
	return strings.TrimSpace(verb + " " + strings.TrimPrefix(group+"/"+resource, "/"))
}

func resource(r bed.Request) string {
	if r.Subresource != "" {
		return r.Resource + "/" + r.Subresource
	}

	return r.Resource
}

// ownPermissions returns the single permissions of the role that is generated from the code. One of
// the seven kinds represents all of them.
func ownPermissions(ctx context.Context) []string {
	GinkgoHelper()

	role := &rbacv1.ClusterRole{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: namespace + "-operator"}, role)).To(Succeed())

	var all []string

	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if kind, _, _ := strings.Cut(
					resource,
					"/",
				); group == v1alpha2.GroupVersion.Group &&
					kind != "infrastructureproviders" {
					continue
				}

				for _, verb := range rule.Verbs {
					all = append(all, permission(verb, group, resource))
				}
			}
		}
	}

	return all
}

// installInventory installs the CustomResourceDefinition of clusterctl's inventory, as clusterctl does. An operator
// that must not install providers cannot.
func installInventory(ctx context.Context) {
	GinkgoHelper()

	file := filepath.Join(GinkgoT().TempDir(), "inventory.yaml")
	Expect(os.WriteFile(file, config.ClusterctlAPIManifest, 0o600)).To(Succeed())
	run(ctx, "kubectl", "apply", "-f", file)
	DeferCleanup(func(ctx SpecContext) { run(ctx, "kubectl", "delete", "-f", file) })
}

// inventory returns a function that lists the providers in clusterctl's inventory.
func inventory(ctx context.Context) func() string {
	return func() string {
		return run(ctx, "kubectl", "get", "providers.clusterctl.cluster.x-k8s.io", "-A",
			"-o", "jsonpath={.items[*].metadata.name}")
	}
}
