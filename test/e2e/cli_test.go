package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/faults"
	"github.com/capstan-project/capstan/test/harness"
)

// cliUser is the user name of the command line in the bed's audit log.
const cliUser = "cli-user"

// commandLine runs the capstan program without a terminal.
type commandLine struct {
	w       *world
	program string
}

// capstanProgram returns the path of the program, which this process builds once if at all.
var capstanProgram = sync.OnceValues(func() (string, error) {
	return harness.Program(context.Background(), root, programs, harness.CapstanProgram)
})

func newCommandLine(w *world) commandLine {
	GinkgoHelper()
	return commandLine{w, must(capstanProgram())}
}

// command returns a command that has not been started.
func (c commandLine) command(ctx context.Context, args ...string) *exec.Cmd {
	GinkgoHelper()

	kubeconfig, err := c.w.bed.KubeconfigFor(cliUser)
	Expect(err).NotTo(HaveOccurred())

	cmd := exec.CommandContext(ctx, c.program, args...)

	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)

	return cmd
}

func (c commandLine) run(ctx context.Context, args ...string) (out, failure string, code int) {
	GinkgoHelper()

	cmd := c.command(ctx, args...)

	var stdout, stderr strings.Builder

	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); !errors.As(err, new(*exec.ExitError)) {
		Expect(err).NotTo(HaveOccurred())
	}

	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func (c commandLine) succeed(ctx context.Context, args ...string) string {
	GinkgoHelper()

	out, failure, code := c.run(ctx, args...)
	Expect(code).To(BeZero(), "%s\n%s", out, failure)
	Expect(failure).To(BeEmpty())

	return out
}

func (c commandLine) fail(ctx context.Context, args ...string) Assertion {
	GinkgoHelper()

	out, failure, code := c.run(ctx, args...)
	Expect(code).To(Equal(1), "%s\n%s", out, failure)

	return Expect(failure)
}

// writes returns the number of requests of the command line that change something.
func (c commandLine) writes() int {
	GinkgoHelper()

	requests, err := c.w.bed.Requests(func(r bed.Request) bool { return r.User == cliUser && r.Write() })
	Expect(err).NotTo(HaveOccurred())

	return len(requests)
}

// createOperatorDeployment creates the Deployment that the operator has when its chart installs it, and what it
// publishes then.
func (w *world) createOperatorDeployment(ctx context.Context) {
	GinkgoHelper()

	labels := map[string]string{"app.kubernetes.io/name": "capstan"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "capstan", Namespace: harness.OperatorNamespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "operator", Image: "operator", Args: []string{"--concurrency=4"}}},
				},
			},
		},
	}
	Expect(w.client.Create(ctx, deployment)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(w.client.Delete(ctx, deployment))).To(Succeed())
	})

	w.publishConfig(ctx, deployment.Namespace)
}

// publishConfig publishes what an operator with default flags does in a namespace.
func (w *world) publishConfig(ctx context.Context, namespace string) {
	GinkgoHelper()

	config := &controllers.Config{}
	Expect(config.Set(nil)).To(BeEmpty())
	Expect((&controllers.Publisher{Client: w.client, Namespace: namespace, Config: config}).Publish(ctx)).To(Succeed())
}

var _ = Describe("The command line", Ordered, func() {
	var (
		w                 *world
		cli               commandLine
		core, docker, aws v1alpha2.Provider
	)

	BeforeAll(func(ctx SpecContext) {
		w = newWorld()
		cli = newCommandLine(w)
		w.createOperatorDeployment(ctx)
		cli.fail(ctx, "status", "aws").To(ContainSubstring("provider aws not found: there are no providers"))
		w.start()
		core = w.install(ctx, samples, harness.Wanted{Label: "cluster-api"})
		docker = w.install(ctx, samples, harness.Wanted{Label: "infrastructure-docker", Version: "v1.0.0"})

		aws = w.install(ctx, samples, harness.Wanted{Label: "infrastructure-aws", Variables: harness.AWSVariables})
		for _, p := range []v1alpha2.Provider{core, docker, aws} {
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		}
	})

	It("shows the providers as a table, as trees and as data", func(ctx SpecContext) {
		Expect(cli.succeed(ctx, "status")).To(MatchRegexp(
			`^NAME +VERSION +WANTED +REVISION +READY +AGE +MESSAGE\n` +
				`cluster-api +v1\.0\.0 +v1\.0\.0 +1 +True +\S+ +v1\.0\.0 is healthy\n` +
				`infrastructure-aws +v1\.0\.0 +v1\.0\.0 +1 +True +\S+ +v1\.0\.0 is healthy\n` +
				`infrastructure-docker +v1\.0\.0 +v1\.0\.0 +1 +True +\S+ +v1\.0\.0 is healthy\n$`))
		Expect(cli.succeed(ctx, "status", "-o", "tree")).To(And(
			MatchRegexp(
				`(?m)^cluster-api: v1\.0\.0 is healthy\n├─ version v1\.0\.0, contract v1beta\d\n`+
					`├─ resource CoreProvider cluster-api-system/cluster-api\n`+
					`└─ release cluster-api, revision 1, deployed: (\d+) of (\d+) objects healthy$`,
			),
			ContainSubstring("\ninfrastructure-docker: v1.0.0 is healthy\n"),
			Not(ContainSubstring("\x1b")),
			Not(ContainSubstring("Deployment")),
		))
		Expect(cli.succeed(ctx, "status", "docker", "--color", "always")).To(And(
			HavePrefix("\x1b[32minfrastructure-docker: v1.0.0 is healthy\x1b[0m\n"),
			MatchRegexp(`\n├─ \d+ CRDs\n`),
			ContainSubstring("registry.example.com/capi/capd-manager:v1.0.0\n"),
			ContainSubstring(" ago: Healthy"),
			Not(ContainSubstring("unknown")),
			Not(ContainSubstring("cluster-api: ")),
		))

		var views []map[string]any
		Expect(json.Unmarshal([]byte(cli.succeed(ctx, "status", "-o", "json", "-n", aws.GetNamespace())), &views)).To(
			Succeed())
		Expect(views).To(
			HaveExactElements(And(HaveKeyWithValue("label", "infrastructure-aws"), HaveKeyWithValue("ready", "True"))))
		cli.fail(ctx, "status", "azure").
			To(And(
				HavePrefix("Error: provider azure not found; the existing ones are: cluster-api (CoreProvider"),
				ContainSubstring("infrastructure-aws"),
			))
	})

	It("completes names of providers, their versions and namespaces", func(ctx SpecContext) {
		complete := func(args ...string) string {
			GinkgoHelper()

			out, _, code := cli.run(ctx, append([]string{"__complete"}, args...)...)
			Expect(code).To(BeZero())

			return out
		}

		const (
			awsLine    = "infrastructure-aws\tv1.0.0 in infrastructure-aws-system\n"
			dockerLine = "infrastructure-docker\tv1.0.0 in infrastructure-docker-system\n"
		)

		Expect(complete("delete", "infrastructure-")).To(Equal(awsLine + dockerLine + ":4\n"))
		Expect(complete("delete", "infrastructure-aws", "infra")).To(Equal(dockerLine + ":4\n"))
		Expect(complete("status", "-n", "infrastructure-aws-system", "")).To(Equal(awsLine + ":4\n"))
		Expect(complete("upgrade", "apply", "infrastructure-a")).To(HavePrefix("infrastructure-aws:\t"))
		Expect(complete("history", "--namespace", "infrastructure-")).To(ContainSubstring("infrastructure-docker-system\n"))
	})

	It("is a plugin of kubectl", func(ctx SpecContext) {
		// As krew installs it, and as docs/install.md sets up completion.
		folder := GinkgoT().TempDir()
		Expect(os.Symlink(cli.program, filepath.Join(folder, "kubectl-capstan"))).To(Succeed())
		Expect(os.Symlink(w.bed.Binary("kubectl"), filepath.Join(folder, "kubectl"))).To(Succeed())

		script := []byte("#!/bin/sh\nexec kubectl capstan __complete \"$@\"\n")
		Expect(os.WriteFile(filepath.Join(folder, "kubectl_complete-capstan"), script, 0o700)).To(Succeed())

		kubectl := func(args ...string) string {
			GinkgoHelper()

			cmd := w.bed.Command(ctx, "kubectl", args...)
			cmd.Env = append(cmd.Env, "PATH="+folder+":"+os.Getenv("PATH"))
			out, err := cmd.Output()
			Expect(err).NotTo(HaveOccurred(), string(out))

			return string(out)
		}

		Expect(kubectl("capstan", "status", "aws")).To(HavePrefix("infrastructure-aws: v1.0.0 is healthy\n"))
		Expect(kubectl("capstan", "delete", "--help")).To(ContainSubstring("\n  kubectl capstan delete infrastructure-aws\n"))
		Expect(kubectl("__complete", "capstan", "delete", "infrastructure-a")).To(HavePrefix("infrastructure-aws\t"))
	})

	It("shows the difference to the spec and to another version, and changes nothing", func(ctx SpecContext) {
		for _, label := range []string{"cluster-api", "infrastructure-docker", "infrastructure-aws"} {
			Expect(cli.succeed(ctx, "diff", label, "--exit-code")).To(Equal(label + ": no changes\n"))
		}

		cli.fail(ctx, "diff", "docker", "--version", "v1.1.0").
			To(ContainSubstring("v1.1.0"), "the source does not have it yet")
		newer, err := harness.Load(ctx, samples, harness.Wanted{Label: "infrastructure-docker", Version: "v1.1.0"})
		Expect(err).NotTo(HaveOccurred())
		Expect(newer.Prepare(ctx, w.client)).To(Succeed())

		out, _, code := cli.run(ctx, "diff", "docker", "--version", "v1.1.0", "--exit-code")
		Expect(code).To(Equal(2))
		Expect(out).To(And(
			MatchRegexp(`Deployment infrastructure-docker-system/\S+ would be changed:\n@@ `),
			ContainSubstring("\n-        image: registry.example.com/capi/capd-manager:v1.0.0\n"),
			ContainSubstring("\n+        image: registry.example.com/capi/capd-manager:v1.1.0\n"),
			ContainSubstring("ConfigMap infrastructure-docker-system/capd-load-balancer would be deleted:"),
			MatchRegexp(
				`(?m)^infrastructure-docker v1\.0\.0 to v1\.1\.0: 0 objects to create, \d+ to change, 1 to delete; `+
					`0 CRDs to create, \d+ to change$`,
			),
		))
		Expect(cli.writes()).To(BeZero())
	})

	It("shows the difference to a file", func(ctx SpecContext) {
		given := w.read(ctx, docker)(Default).DeepCopyObject().(v1alpha2.Provider)
		given.GetSpec().Variables = map[string]string{"EXP_MACHINE_POOL": "quite-another"}
		given.GetObjectKind().SetGroupVersionKind(given.ProviderType().GroupVersionKind())
		given.SetManagedFields(nil)
		text, err := yaml.Marshal(given)
		Expect(err).NotTo(HaveOccurred())

		file := filepath.Join(GinkgoT().TempDir(), "docker.yaml")
		Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
		Expect(cli.succeed(ctx, "diff", "-f", file)).To(
			And(MatchRegexp(`(?m)^\+ .*quite-another`), ContainSubstring("0 objects to create, 1 to change, 0 to delete")))
		Expect(cli.writes()).To(BeZero())
	})

	It("hides the values of Secrets", func(ctx SpecContext) {
		const (
			token = "a-secret-token"
			place = "another-secret" // in an environment variable of the Deployment
		)

		secret := &corev1.Secret{}
		name, _ := aws.GetSpec().VariablesSecret(aws.GetNamespace())
		Expect(w.client.Get(ctx, name, secret)).To(Succeed())
		before := secret.DeepCopy()
		secret.Data["AWS_B64ENCODED_CREDENTIALS"] = []byte(base64.StdEncoding.EncodeToString([]byte(token)))
		secret.Data["AWS_REGION"] = []byte(place)
		Expect(w.client.Update(ctx, secret)).To(Succeed())

		for _, format := range []string{"table", "json", "yaml"} {
			out := cli.succeed(ctx, "diff", "aws", "-o", format)
			Expect(out).To(And(ContainSubstring("<masked AWS_REGION>"), ContainSubstring("changed>")))
			Expect(out).NotTo(Or(ContainSubstring(token), ContainSubstring(place),
				ContainSubstring(base64.StdEncoding.EncodeToString([]byte(token)))))
		}

		before.ResourceVersion = ""
		Expect(w.client.Update(ctx, before)).To(Succeed())
		Expect(cli.succeed(ctx, "diff", "aws")).To(Equal("infrastructure-aws: no changes\n"))
	})

	It("plans and applies upgrades", func(ctx SpecContext) {
		Expect(cli.succeed(ctx, "upgrade", "plan")).To(And(
			MatchRegexp(`(?m)^cluster-api +v1\.0\.0 +- +v1beta\d$`),
			MatchRegexp(`(?m)^infrastructure-docker +v1\.0\.0 +v1\.1\.0 +v1beta\d$`),
			ContainSubstring("capstan upgrade apply --contract "),
		))
		cli.fail(ctx, "upgrade", "apply", "docker").To(ContainSubstring("contains no exact version"))
		cli.fail(ctx, "upgrade", "apply", "--contract", "v1alpha4").
			To(ContainSubstring("no version of core has the contract v1alpha4"))
		cli.fail(ctx, "upgrade", "apply", "docker:v1.1.0", "--version", "v1.1.0").
			To(ContainSubstring("either providers with versions"))
		Expect(cli.succeed(ctx, "upgrade", "apply", "--version", "~1.1", "--dry-run")).To(Equal(
			"InfrastructureProvider infrastructure-docker-system/docker: would be upgraded to v1.1.0\n"))
		Expect(cli.succeed(ctx, "upgrade", "apply", "--version", "~1.1", "--only", "aws", "--dry-run")).To(
			ContainSubstring("There is nothing to upgrade"))
		Expect(cli.succeed(ctx, "upgrade", "apply", "docker:v1.1.0")).To(And(
			ContainSubstring("InfrastructureProvider infrastructure-docker-system/docker: upgrading to v1.1.0"),
			MatchRegexp(`docker: v1\.1\.0 is healthy \(\S+s\)\n1 of 1 provider ready after \S+s\n$`)))
		Expect(w.read(ctx, docker)(Default)).To(beReady("v1.1.0"))

		before := cli.writes()
		cli.fail(ctx, "upgrade", "apply", "aws:v1.0.0", "docker:v1.0.0").To(ContainSubstring(
			"nothing was changed: v1.0.0 of InfrastructureProvider infrastructure-docker-system/docker is older than the " +
				"installed v1.1.0; if that is intended, add --allow-downgrade"))
		Expect(cli.writes()).To(Equal(before))
	})

	It("shows the history, and the difference to a revision", func(ctx SpecContext) {
		Expect(cli.succeed(ctx, "history", "infrastructure/docker")).To(MatchRegexp(
			`(?s)^REVISION .*\n` +
				`1 +\S+ +superseded +yes +v1\.0\.0 +capstan +installation +\w{12} +Install complete\n` +
				`2 +\S+ +deployed +yes +v1\.1\.0 +capstan +version +\w{12} +Upgrade complete\n$`,
		))
		Expect(cli.succeed(ctx, "diff", "docker", "--revision", "1")).To(And(
			ContainSubstring("ConfigMap infrastructure-docker-system/capd-load-balancer would be created:"),
			ContainSubstring("\n+        image: registry.example.com/capi/capd-manager:v1.0.0\n"),
		))
		cli.fail(ctx, "diff", "docker", "--revision", "9").To(ContainSubstring("has no revision 9"))
		w.run(ctx, "helm", "rollback", "infrastructure-docker", "1", "-n", docker.GetNamespace())
		Eventually(func() string { return cli.succeed(ctx, "history", "docker") }).Should(
			MatchRegexp(`3 +\S+ +deployed +\? +v1\.0\.0 +helm +Rollback to 1\n$`))
		Expect(cli.succeed(ctx, "diff", "docker")).To(ContainSubstring("infrastructure-docker v1.0.0 to v1.1.0"))
	})

	It("rolls back to a revision, and undoes it", func(ctx SpecContext) {
		Expect(cli.succeed(ctx, "rollback", "docker", "2")).To(And(
			ContainSubstring("docker: rolling back to revision 2, version v1.1.0\n"),
			MatchRegexp(`docker: v1\.1\.0 is healthy, rolled back to revision 2 by \S+; to end .* \(\S+s\)\n$`),
		))
		Expect(cli.succeed(ctx, "status", "docker")).To(
			And(ContainSubstring("rolled back to revision 2 by spec."), ContainSubstring("revision 4, deployed")))
		Expect(cli.succeed(ctx, "rollback", "docker", "1")).To(
			MatchRegexp(`docker: v1\.0\.0 is healthy, rolled back to revision 1 by \S+; v1\.1\.0 is wanted; .* \(\S+s\)\n$`))
		out, warnings, code := cli.run(ctx, "diff", "docker")
		Expect(code).To(BeZero())
		Expect(out).To(Equal("infrastructure-docker: no changes\n"))
		Expect(warnings).To(ContainSubstring("spec.release.rollbackTo is 1"))

		before := cli.writes()
		cli.fail(ctx, "rollback", "docker", "--undo").To(ContainSubstring("repeat the command with --yes"))
		cli.fail(ctx, "rollback", "aws", "--undo").To(ContainSubstring("aws is not held at a revision"))
		Expect(cli.writes()).To(Equal(before))

		By("keeping it")
		Expect(cli.succeed(ctx, "rollback", "docker", "--keep")).To(And(
			ContainSubstring("docker: spec.version becomes v1.0.0 instead of v1.1.0\n"),
			MatchRegexp(`docker: v1\.0\.0 is healthy \(\S+s\)\n$`)))
		cli.fail(ctx, "rollback", "docker", "--keep").To(ContainSubstring("docker asks for v1.0.0 already"))
		Expect(cli.succeed(ctx, "reconcile", "docker")).To(And(
			ContainSubstring("docker: reconcile requested\n"), HaveSuffix("s)\n")))
		cli.succeed(ctx, "upgrade", "apply", "docker:v1.1.0")
		cli.succeed(ctx, "rollback", "docker", "1")

		Expect(cli.succeed(ctx, "rollback", "docker", "--undo", "--yes")).To(And(
			ContainSubstring("docker is held at revision 1, with v1.0.0. Without that, the operator applies what the "+
				"resource asks for now: v1.1.0.\n"),
			MatchRegexp(`docker: v1\.1\.0 is healthy \(\S+s\)\n$`)))
		cli.fail(ctx, "rollback", "docker", "99").To(HaveSuffix(
			"has no revision 99; `capstan history infrastructure-docker` lists the revisions\n"))
		cli.fail(ctx, "rollback", "aws").To(ContainSubstring("no earlier revision that was healthy"))
	})

	It("suspends and resumes providers", func(ctx SpecContext) {
		seen := gbytes.NewBuffer()
		watch := cli.command(context.WithoutCancel(ctx), "status", "docker", "--watch")
		watch.Stdout = seen
		Expect(watch.Start()).To(Succeed())
		DeferCleanup(func() {
			Expect(watch.Process.Signal(os.Interrupt)).To(Succeed())
			Expect(watch.Wait()).To(Succeed(), "an interrupt ends --watch normally")
		})
		Eventually(seen).Should(gbytes.Say("infrastructure-docker: v1.1.0 is healthy"))
		Expect(cli.succeed(ctx, "suspend", "docker", "aws")).To(HavePrefix(
			"InfrastructureProvider infrastructure-aws-system/aws: suspended\n" +
				"InfrastructureProvider infrastructure-docker-system/docker: suspended\n",
		))
		Expect(w.read(ctx, docker)(Default)).To(beReadyWith(v1alpha2.SuspendedReason, "v1.1.0 is healthy"))
		Expect(cli.succeed(ctx, "upgrade", "apply", "docker:v1.0.0", "--allow-downgrade", "--wait=false")).To(
			ContainSubstring("docker: downgrading to v1.0.0"))
		Eventually(w.read(ctx, docker)).Should(
			notBeReady(v1alpha2.SuspendedReason, "v1.1.0 is healthy; v1.0.0 is wanted; "))
		Expect(cli.succeed(ctx, "status")).To(MatchRegexp(
			`(?m)^infrastructure-docker +v1\.1\.0 +v1\.0\.0 +\d+ +False +\S+ +v1\.1\.0 is healthy; v1\.0\.0 is wanted; nothing`))
		Eventually(seen).Should(gbytes.Say("nothing is changed while spec.suspend is true"))
		Expect(cli.succeed(ctx, "suspend", "aws")).To(ContainSubstring("aws: already suspended\n"))
		_, failure, code := cli.run(ctx, "pause", "--all")
		Expect(code).To(Equal(1))
		Expect(failure).To(ContainSubstring("aws is suspended, so the operator does not scale it"))
		Expect(w.read(ctx, core)(Default).GetSpec().Paused).To(BeFalse(), "nothing is changed then")
		Expect(cli.succeed(ctx, "resume", "docker", "aws")).To(ContainSubstring("aws: resumed\n"))
		Expect(w.read(ctx, docker)(Default)).To(beReady("v1.0.0"))
	})

	It("keeps waiting and watching while the API server fails", func(ctx SpecContext) {
		proxy := faults.New(1)
		kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		server, err := proxy.Serve(w.bed.Config(), kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Close)

		begin := func(args ...string) *gexec.Session {
			command := cli.command(context.WithoutCancel(ctx), append(args, "--kubeconfig", kubeconfig)...)
			session, err := gexec.Start(command, GinkgoWriter, GinkgoWriter)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() { session.Kill() })

			return session
		}

		Expect(w.operator.Stop()).To(Succeed())

		suspend, watch := begin("suspend", "docker"), begin("status", "docker", "--watch")
		Eventually(suspend).Should(gbytes.Say("docker: suspended"))
		Eventually(watch).Should(gbytes.Say("infrastructure-docker"))

		proxy.Break(func(*http.Request) bool { return true })
		Eventually(suspend.Err).Should(gbytes.Say("Warning: read InfrastructureProvider .*; trying again\n"))
		Eventually(watch.Err).Should(gbytes.Say("Warning: .*; trying again\n"))
		proxy.Break(nil)

		w.start()
		Eventually(suspend).Should(gexec.Exit(0))
		Eventually(watch).Should(gbytes.Say("nothing is changed while spec.suspend is true"))
		Eventually(watch.Interrupt()).Should(gexec.Exit(0))
		Expect(cli.succeed(ctx, "resume", "docker")).To(MatchRegexp(`docker: v1\.0\.0 is healthy \(\S+s\)\n$`))
	})

	It("pauses and unpauses all providers", func(ctx SpecContext) {
		Expect(cli.succeed(ctx, "pause", "--all")).To(And(
			HavePrefix("CoreProvider cluster-api-system/cluster-api: paused\n"),
			MatchRegexp(`docker: v1\.0\.0 is paused: its Deployments have no replicas \(\S+s\)\n`),
		))

		for _, p := range []v1alpha2.Provider{core, docker, aws} {
			Expect(w.read(ctx, p)(Default)).To(beReadyWith(v1alpha2.PausedReason, "is paused"))
		}

		before := cli.writes()
		Expect(cli.succeed(ctx, "pause", "aws")).To(ContainSubstring("aws: already paused\n"))
		Expect(cli.writes()).To(Equal(before))
		Expect(cli.succeed(ctx, "resume", "--all")).To(ContainSubstring("aws: not suspended\n"))
		Expect(w.read(ctx, aws)(Default).GetSpec().Paused).To(BeTrue(), "it was not suspended, so it is not resumed")
		Expect(cli.succeed(ctx, "unpause", "--all")).To(ContainSubstring("aws: unpaused\n"))

		for _, p := range []v1alpha2.Provider{core, docker, aws} {
			Expect(w.read(ctx, p)(Default)).To(beReady("v1.0.0"))
		}

		before = cli.writes()
		Expect(cli.succeed(ctx, "unpause", "--all")).To(ContainSubstring("aws: not paused\n"))
		Expect(cli.writes()).To(Equal(before))
	})

	It("deletes providers, and reports what blocks the deletion", func(ctx SpecContext) {
		t := newTiny("cli", "v1.0.0")

		p := t.resource()
		for _, o := range []client.Object{t.namespace(), t.configMap(), p} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(w.client.Create(ctx, t.object("v1", "production"))).To(Succeed())

		before := cli.writes()
		inUse := "1 object still exists: 1 " + t.crd() + " (e.g. default/production)"

		cli.fail(ctx, "delete", "--all", "--include-crd").To(And(
			HavePrefix("Error: nothing is deleted, because not all providers can be removed:\n"+
				"  InfrastructureProvider cli/cli: "+inUse+"; delete them first, or use --force"),
			Not(ContainSubstring("docker")),
		))
		cli.fail(ctx, "delete", "--all", "--include-crd", "--force").To(ContainSubstring("CRDs are not deleted then"))
		cli.fail(ctx, "delete", "--all", "-n", core.GetNamespace()).To(
			ContainSubstring("core is removed last; select as well: infrastructure-aws, infrastructure-cli,"))
		Expect(cli.writes()).To(Equal(before))

		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletionBlockedReason, "default/production"))

		out, failure, code := cli.run(ctx, "delete", "cli", "--wait", "--timeout", "3s")
		Expect(code).To(Equal(1))
		Expect(out).To(
			ContainSubstring("removal is blocked: 1 object still exists: 1 " + t.crd() + " (e.g. default/production)"))
		Expect(failure).To(ContainSubstring("timed out after 3s"))

		Expect(cli.succeed(ctx, "delete", "infrastructure-cli", "--force", "--include-namespace", "--wait")).To(
			MatchRegexp(`InfrastructureProvider cli/cli: removed \(\S+s\)\nNamespace cli: removed\n1 CRD kept; to delete .*: ` +
				`kubectl delete crd -l 'cluster\.x-k8s\.io/provider in \(infrastructure-cli\)'\n$`))
		Expect(w.client.Get(ctx, client.ObjectKey{Name: "cli"}, &corev1.Namespace{})).To(
			MatchError(ContainSubstring("not found")), "it can be created again")
		Expect(
			w.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "production"}, t.object("v1", "production")),
		).To(Succeed())

		before = cli.writes()
		cli.fail(ctx, "delete", "--all").To(ContainSubstring("repeat the command with --yes"))
		Expect(cli.succeed(ctx, "delete", "--all", "--include-crd", "--dry-run")).To(MatchRegexp(
			`^InfrastructureProvider \S+/docker would be removed\n` +
				`├─ release infrastructure-docker with \d+ objects\n└─ \d+ CRDs\n` +
				`(?s:.*)CoreProvider cluster-api-system/cluster-api would be removed\n├─ release .*\n└─ .*\n$`,
		))
		Expect(cli.writes()).To(Equal(before))

		Expect(cli.succeed(ctx, "delete", "--all", "--include-crd", "--include-namespace", "--yes")).To(And(
			ContainSubstring("/docker: removed ("), ContainSubstring("/aws: removed ("),
			ContainSubstring("CoreProvider cluster-api-system/cluster-api: removed ("),
			Not(ContainSubstring("healthy")),
		))
		Expect(w.run(ctx, "kubectl", "get", "crds", "-l", "cluster.x-k8s.io/provider", "-o", "name")).To(
			Equal("customresourcedefinition.apiextensions.k8s.io/" + t.crd() + "\n"))
		Expect(cli.succeed(ctx, "delete", "--all")).To(Equal("There are no providers.\n"))
		Expect(cli.succeed(ctx, "status")).To(Equal("There are no providers.\n"))
	})
})
