package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/mirror/certmanager"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/harness"
)

// certManagerValues make cert-manager's webhooks match nothing: its pods are simulated.
const certManagerValues = `webhook:
  mutatingWebhookConfiguration: {namespaceSelector: {matchLabels: {webhooks: run}}}
  validatingWebhookConfiguration: {namespaceSelector: {matchLabels: {webhooks: run}, matchExpressions: null}}
`

// packCertManager packs cert-manager's chart and returns the archive.
func packCertManager(ctx context.Context) string {
	GinkgoHelper()

	set, err := tools.Find()
	Expect(err).NotTo(HaveOccurred())
	archive, version, err := set.PackCertManager(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	Expect(version).To(Equal(certmanager.Version), "the version that is installed is the one that is tested")

	return archive
}

// file writes a temporary file and returns its path.
func file(name, content string) string {
	GinkgoHelper()

	path := filepath.Join(GinkgoT().TempDir(), name)
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())

	return path
}

// operatorArgs waits for the operator's Deployment and returns the arguments of its container.
func (w *world) operatorArgs(ctx context.Context) []string {
	GinkgoHelper()

	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: "capstan-system", Name: "capstan"}

	Eventually(func() error { return w.client.Get(ctx, key, deployment) }).Should(Succeed())

	return deployment.Spec.Template.Spec.Containers[0].Args
}

// reportCost adds to the report of the spec how long something took, and how many requests it needed.
func (w *world) reportCost(of string, start time.Time) {
	GinkgoHelper()

	requests, err := w.bed.Requests(func(r bed.Request) bool { return r.Received.After(start) && !r.Lease() })
	Expect(err).NotTo(HaveOccurred())

	programs := map[string]int{}

	for _, r := range requests {
		program, _, _ := strings.Cut(r.UserAgent, "/")
		programs[program]++
	}

	AddReportEntry(of, fmt.Sprintf("%s; requests to the API server: %d of capstan, %d of the operator",
		time.Since(start).Round(100*time.Millisecond), programs["capstan"], programs["operator"]))
}

const emptyCluster = "capstan init turns an empty cluster into a management cluster"

var _ = Describe(emptyCluster, Ordered, everyKubernetes, func() {
	var (
		w           *world
		cli         commandLine
		args        []string
		credentials []string
	)

	BeforeAll(func(ctx SpecContext) {
		w = emptyWorld(bed.Options{WithoutCertManager: true})
		cli = newCommandLine(w)

		var labels []string
		for _, wanted := range harness.Standard {
			labels = append(labels, wanted.Label)
		}

		args = []string{
			"init", "--infrastructure", "docker,aws", "--config", clusterctlConfig(samples, labels...),
			"--cert-manager", packCertManager(ctx), "--cert-manager-values", file("values.yaml", certManagerValues),
		}
		credentials = []string{"--variables", file("variables.yaml",
			"AWS_B64ENCODED_CREDENTIALS: "+harness.AWSVariables["AWS_B64ENCODED_CREDENTIALS"]+"\n")}
	})

	It("and lists what is missing before it changes anything", func(ctx SpecContext) {
		out, failure, code := cli.run(ctx, args...)
		Expect(code).To(Equal(1))
		Expect(failure).To(Equal("Error: nothing was changed, because required variables have no value: " +
			"AWS_B64ENCODED_CREDENTIALS of infrastructure-aws; set them in the environment, in the configuration file, or in " +
			"the file of --variables\n"))
		Expect(out).To(And(
			MatchRegexp(`(?m)^cert-manager: release cert-manager/cert-manager of chart cert-manager v1\.`),
			MatchRegexp(`(?m)^operator: release capstan-system/capstan of chart capstan 0\.1\.0 \(included in capstan\)$`),
			MatchRegexp(`(?m)^cluster-api: v1\.\d+\.\d+, to namespace capi-system$`),
			ContainSubstring("\n  variable AWS_B64ENCODED_CREDENTIALS: required, has no value\n"),
		))

		cli.fail(ctx, append(args, "--core", "unknown")...).To(
			ContainSubstring("Error: unknown: CoreProvider unknown is neither in clusterctl's list of providers nor"))
		Expect(cli.writes()).To(BeZero())
	})

	It("and says what it waits for while no operator runs", func(ctx SpecContext) {
		start := time.Now()
		out, failure, code := cli.run(ctx, append(append(args, credentials...), "--timeout", "20s")...)
		Expect(code).To(Equal(1))
		Expect(out).To(MatchRegexp(
			`CoreProvider capi-system/cluster-api: waiting for the operator \(\S+ of 20s\)\n`))
		Expect(failure).To(ContainSubstring("CoreProvider capi-system/cluster-api: timed out after 20s: waiting for " +
			"the operator; the operator continues, follow it with `capstan status cluster-api --watch`"))
		Expect(out+failure).NotTo(
			ContainSubstring(harness.AWSVariables["AWS_B64ENCODED_CREDENTIALS"]), "secrets are not shown")
		w.reportCost("cert-manager, the operator and the resources, and 20 s of waiting", start)

		for _, name := range []string{"cert-manager", "capstan"} {
			Expect(w.helm(ctx, "helm", "list", "-A", "--filter", "^"+name+"$")).To(
				ConsistOf(HaveField("Status", "deployed")), name)
		}
	})

	It("and continues when it is run again", func(ctx SpecContext) {
		start := time.Now()

		w.start("--config=" + args[4])

		_, failure, code := cli.run(ctx, append(args, credentials...)...)
		Expect(code).To(BeZero(), failure)
		w.reportCost("all providers", start)
		w.publishConfig(ctx, "capstan-system")

		out := cli.succeed(ctx, append(args, credentials...)...)
		Expect(out).To(And(
			ContainSubstring("cert-manager: the cluster has its API already\n"),
			ContainSubstring("operator: Deployment capstan-system/capstan exists\n"),
			ContainSubstring("infrastructure-aws: InfrastructureProvider capa-system/aws exists\n"),
			MatchRegexp(`InfrastructureProvider capa-system/aws: v\d+\.\d+\.\d+ is healthy \(\S+s\)\n`),
			MatchRegexp(`Done after \d+`),
		))
		Expect(out).NotTo(ContainSubstring("created"))

		var names []string
		for _, release := range w.helm(ctx, "helm", "list", "-A") {
			names = append(names, release.Name)
		}

		Expect(names).To(ConsistOf("cert-manager", "capstan", "cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm",
			"infrastructure-docker", "infrastructure-aws"))

		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: "capa-system", Name: "infrastructure-aws-variables"}
		Expect(w.client.Get(ctx, key, secret)).To(Succeed())
		Expect(secret.Data).To(HaveKeyWithValue("AWS_B64ENCODED_CREDENTIALS",
			[]byte(harness.AWSVariables["AWS_B64ENCODED_CREDENTIALS"])))
	})

	It("and changes nothing that exists", func(ctx SpecContext) {
		before := cli.writes()

		Expect(cli.succeed(ctx, append(args, credentials...)...)).To(ContainSubstring(" is healthy ("))
		cli.fail(ctx, append(args, "--core", "cluster-api:v0.0.1")...).To(
			MatchRegexp("CoreProvider capi-system/cluster-api exists with spec.version v.*, not v0.0.1; to change it, " +
				"run `capstan upgrade apply cluster-api:v0.0.1 --allow-downgrade`"))
		Expect(cli.writes()).To(Equal(before))
	})

	It("and changes values of variables that are given again", func(ctx SpecContext) {
		const (
			name    = "Secret capa-system/infrastructure-aws-variables"
			changed = "AWS_B64ENCODED_CREDENTIALS (from --variables)"
		)

		other := append(args, "--variables", file("variables.yaml", "AWS_B64ENCODED_CREDENTIALS: b3RoZXItdmFsdWU=\n"))
		before := cli.writes()
		Expect(cli.succeed(ctx, append(other, "--dry-run")...)).To(And(
			ContainSubstring("  "+name+": changes "+changed+"\n"), Not(ContainSubstring("b3Ro"))))
		Expect(cli.writes()).To(Equal(before))

		Expect(cli.succeed(ctx, other...)).To(And(
			ContainSubstring(name+" updated: "+changed+"\n"),
			MatchRegexp(`InfrastructureProvider capa-system/aws: v[0-9.]+ is healthy \(\S+s\)\n`),
			Not(ContainSubstring("b3Ro"))))

		credentials := &corev1.Secret{}
		key := client.ObjectKey{Namespace: "capa-system", Name: "capa-manager-bootstrap-credentials"}
		Expect(w.client.Get(ctx, key, credentials)).To(Succeed())
		Expect(credentials.Data).To(HaveKeyWithValue("credentials", []byte("other-value")), "when the command ends")
	})
})

var _ = Describe("Behind an air gap, capstan init", func() {
	It("installs everything from the archive of a mirror", func(ctx SpecContext) {
		network := newIsolatedNetwork()
		w := emptyWorld(bed.Options{WithoutCertManager: true})
		cli := newCommandLine(w)
		r := newPrivateRegistry(ctx, outside+":0")
		access := []string{"--registry-config", r.config, "--registry-ca", r.ca}

		By("making the archive where there is internet access")
		w.run(ctx, "helm", "push", packCertManager(ctx), "oci://"+r.Address+"/jetstack/charts",
			"--registry-config", r.config, "--ca-file", r.ca)

		archive := filepath.Join(GinkgoT().TempDir(), "mirror.tar")
		chart := "oci://" + r.Address + "/jetstack/charts/cert-manager:" + certmanager.Version
		labels := []string{"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-docker"}
		_, failure, code := cli.run(ctx, append(append([]string{"mirror"}, labels...), append(access,
			"--source", samples, "--cert-manager", chart, "--charts-only", "--to", archive)...)...)
		Expect(code).To(BeZero(), failure)

		By("copying it to the registry")

		_, failure, code = cli.run(ctx, append([]string{
			"mirror", "--archive", archive, "--to", "oci://" + r.Address + "/capi"}, access...)...)
		Expect(code).To(BeZero(), failure)

		By("starting in a network that reaches only the registry and the API server")

		kubeconfig := w.isolatedKubeconfig()
		initialize := exec.CommandContext(ctx, "ip", append([]string{
			"netns", "exec", network, cli.program, "init", "--infrastructure", "docker",
			"--chart-repository", "oci://" + r.Address + "/capi/charts", "--image-registry", r.Address + "/capi",
			"--cert-manager-values", file("values.yaml", certManagerValues),
			"--timeout", "2m",
		}, access...)...)
		initialize.Env = []string{"HOME=" + GinkgoT().TempDir(), "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + kubeconfig}

		start := time.Now()
		session, err := gexec.Start(initialize, GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())

		flags := w.operatorArgs(ctx)
		Expect(flags).To(ContainElements(
			"--chart-repository=oci://"+r.Address+"/capi/charts", "--image-registry="+r.Address+"/capi",
			"--registry-config=/registry/config.json", "--registry-ca=/registry/ca.crt",
		))

		w.operator, err = harness.StartOperatorAs(w.bed, kubeconfig,
			[]string{"ip", "netns", "exec", network, program}, w.log, r.flags()...)
		Expect(err).NotTo(HaveOccurred())

		Eventually(session, 2*time.Minute).Should(gexec.Exit(0))
		w.reportCost("everything, without internet access", start)

		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: "capstan-system", Name: "capstan-registry"}
		Expect(w.client.Get(ctx, key, secret)).To(Succeed())
		Expect(secret.Data).To(And(HaveKey("config.json"), HaveKeyWithValue("ca.crt", r.CA)))

		for _, namespace := range []string{"capstan-system", "capi-system", "capd-system", "cert-manager"} {
			Expect(w.images(ctx, namespace)).To(HaveEach(HavePrefix(r.Address+"/capi/")), namespace)
		}

		docker := only(v1alpha2.InfrastructureProviderType, "capd-system", "docker", "")
		Expect(w.read(ctx, docker)(Default)).To(HaveField("Spec.Version", Not(BeEmpty())))
		Expect(strings.Join(flags, " ")).NotTo(ContainSubstring(registryPassword))
	})
})
