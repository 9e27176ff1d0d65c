// Package argocd tests the charts and the provider resources with Argo CD. Its application controller and repository
// server run next to a bed, with Redis, and get everything from a registry and from a Git repository, as the
// documentation shows.
package argocd

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

const (
	// root is the module's root.
	root = "../.."
	// wantedVariable is set by `make e2e-argocd`. Without it the scenarios are skipped, because Argo
	// CD takes minutes to build.
	wantedVariable = "E2E_ARGOCD"
	// namespace is the namespace of Argo CD and its Applications.
	namespace = "argocd"
	// argoUser is the user name of Argo CD in the bed's audit log.
	argoUser = "argocd"
	// redisServer is a program that the machine must have, as Git.
	redisServer = "redis-server"
)

var samples = filepath.Join(root, testproviders.Samples)

// The control plane with Argo CD, and the registry, of the current scenario.
var (
	cluster  *bed.Bed
	admin    client.Client
	registry string
)

var operatorProgram string

func TestMain(m *testing.M) {
	if os.Getenv(wantedVariable) == "" {
		fmt.Println("the scenarios with Argo CD are skipped: `make e2e-argocd` runs them")
		return
	}

	for _, program := range []string{redisServer, "git"} {
		if _, err := exec.LookPath(program); err != nil {
			fmt.Printf("the scenarios with Argo CD need %s: install it (on Debian, the package %[1]s)\n", program)
			os.Exit(1)
		}
	}

	os.Exit(m.Run())
}

func TestArgoCD(t *testing.T) {
	log.SetLogger(logr.Discard()) // it would get the API server's warnings
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "Argo CD")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	set, err := tools.Find()
	Expect(err).NotTo(HaveOccurred())
	Expect(set.WithArgoCD().Build(ctx, GinkgoWriter)).To(Succeed())

	operatorProgram, err = harness.Program(ctx, root, GinkgoT().TempDir(), harness.OperatorProgram)
	Expect(err).NotTo(HaveOccurred())
})

// What a spec has waited for in vain is in these objects.
var _ = JustAfterEach(func(ctx SpecContext) {
	if CurrentSpecReport().Failed() && cluster != nil {
		for _, objects := range []string{"applications.argoproj.io", "capstan"} {
			out, err := cluster.Command(ctx, "kubectl", "get", objects, "-A", "-o", "yaml").CombinedOutput()
			GinkgoWriter.Printf("%s:\n%s\n%v\n", objects, out, err)
		}
	}
})

// startWorld starts a control plane with Argo CD, and a registry, until the container of specs ends.
func startWorld(ctx context.Context) {
	GinkgoHelper()

	set, err := tools.Find()
	Expect(err).NotTo(HaveOccurred())

	cluster = bedtest.Start(GinkgoT(), bed.Options{})

	admin, err = harness.NewClient(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	registry, err = cluster.StartRegistry(ctx)
	Expect(err).NotTo(HaveOccurred())

	configure(ctx, set.Manifests(tools.ArgoCDManifests))
	startArgoCD()
}

// configure creates Argo CD's default configuration, with the health check from the documentation, and what the
// components that do not run here would have created.
func configure(ctx context.Context, manifests string) {
	GinkgoHelper()

	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	run(ctx, "kubectl", "apply", "--server-side", "-n", namespace, "-f", manifests)

	for _, name := range []string{"applications.argoproj.io", "appprojects.argoproj.io"} {
		Eventually(func() []apiextensionsv1.CustomResourceDefinitionCondition {
			return definition(ctx, name).Status.Conditions
		}).Should(ContainElement(And(
			HaveField("Type", apiextensionsv1.Established), HaveField("Status", apiextensionsv1.ConditionTrue))))
	}

	apply(ctx, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd}
stringData: {server.secretkey: unused}
---
apiVersion: v1
kind: Secret
metadata: {name: charts, namespace: argocd, labels: {argocd.argoproj.io/secret-type: repository}}
stringData: {name: charts, type: helm, url: "%[1]s/charts", enableOCI: "true", insecureOCIForceHttp: "true"}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec:
  sourceRepos: ["*"]
  destinations: [{namespace: "*", server: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd}
%[2]s`, registry, documented("gitops.md", "Argo CD")[0]))
}

// startArgoCD runs Redis and Argo CD until the container of specs ends.
func startArgoCD() {
	GinkgoHelper()

	kubeconfig, err := cluster.KubeconfigFor(argoUser)
	Expect(err).NotTo(HaveOccurred())

	dir := GinkgoT().TempDir()
	// Argo CD runs "helm", which is version 4 in its image.
	Expect(os.Symlink(cluster.Binary(tools.Helm4), filepath.Join(dir, "helm"))).To(Succeed())
	// This script in its image prints what is known about the signature of a commit. The commits here have none.
	Expect(os.WriteFile(filepath.Join(dir, "git-verify-wrapper.sh"), []byte("#!/bin/sh\n"), 0o700)).To(Succeed())

	environment := []string{
		"KUBECONFIG=" + kubeconfig,
		"HOME=" + dir,
		"TMPDIR=" + dir,
		"PATH=" + dir + ":" + os.Getenv("PATH"),
		"ARGOCD_FAKE_IN_CLUSTER=true", // https://kubernetes.default.svc is the cluster of the kubeconfig
		"ARGOCD_GPG_ENABLED=false",
		"ARGOCD_ASK_PASS_SOCK=" + filepath.Join(dir, "ask-pass.sock"),
		"ARGOCD_TLS_DATA_PATH=" + filepath.Join(dir, "tls"),
		"ARGOCD_SSH_DATA_PATH=" + filepath.Join(dir, "ssh"),
		"ARGOCD_APP_CONF_PATH=" + dir,
	}

	redis, repositories := bedtest.FreeAddress(GinkgoT()), bedtest.FreeAddress(GinkgoT())
	start(environment, redisServer, "--bind", host(redis), "--port", port(redis), "--save", "", "--dir", dir)
	start(environment, cluster.Binary(tools.ArgoCD), "argocd-repo-server", "--redis", redis,
		"--address", host(repositories), "--port", port(repositories), "--disable-tls", "--client-ca-path=",
		"--metrics-address", "127.0.0.1", "--metrics-port", "0")
	start(environment, cluster.Binary(tools.ArgoCD), "argocd-application-controller", "--redis", redis,
		"--namespace", namespace, "--repo-server", repositories, "--repo-server-plaintext",
		"--metrics-port", "0", "--persist-resource-health")
}

func host(address string) string { h, _, _ := net.SplitHostPort(address); return h }

func port(address string) string { _, p, _ := net.SplitHostPort(address); return p }

// start runs a program until the container of specs ends, and logs what it prints.
func start(environment []string, program string, arguments ...string) {
	GinkgoHelper()

	cmd := exec.Command(program, arguments...)
	cmd.Env = environment
	bedtest.Launch(GinkgoT(), cluster, cmd)
}

// startOperator runs the operator with the charts of the registry, and returns a function that stops it and prints its
// log. Specs start it, and the container stops it, because what a spec defers is called when the spec ends.
func startOperator() (stop func()) {
	GinkgoHelper()

	output := filepath.Join(cluster.Dir(), "operator.log")
	operator, err := harness.StartOperator(cluster, operatorProgram, output,
		"--chart-repository=http://"+registry+"/charts", "--trust-chart-repository")
	Expect(err).NotTo(HaveOccurred())

	return func() {
		Expect(operator.Stop()).To(Succeed())

		text, err := os.ReadFile(output)
		GinkgoWriter.Printf("operator:\n%s\n%v\n", text, err)
	}
}

// run runs a program of the bed, as a user would.
func run(ctx context.Context, name string, args ...string) {
	GinkgoHelper()
	bedtest.Output(GinkgoT(), cluster.Command(ctx, name, args...))
}

// apply creates or updates objects.
func apply(ctx context.Context, objects string) {
	GinkgoHelper()
	bedtest.Apply(ctx, GinkgoT(), cluster, objects, "--server-side", "--force-conflicts", "--field-manager=user")
}

// documented returns the resources below a heading of a page in docs, with the suite's registry instead of the
// documented ones, and with the given replacements.
func documented(page, heading string, replacements ...string) []string {
	GinkgoHelper()

	blocks, err := harness.Documented(root, page, heading)
	Expect(err).NotTo(HaveOccurred())

	replacements = append(replacements, "ghcr.io/capstan-project/charts", registry+"/charts",
		"registry.example.com/capi/charts", registry+"/charts")

	for i := range blocks {
		blocks[i] = strings.NewReplacer(replacements...).Replace(blocks[i])
	}

	return blocks
}
