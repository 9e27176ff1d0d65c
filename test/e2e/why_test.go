package e2e

import (
	"context"
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"helm.sh/helm/v3/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/test/harness"
)

// why is the part of the output of `capstan why -o json` that scenarios compare.
type why struct {
	Reported *metav1.Condition `json:"reported"`
	Passes   []struct {
		Ready   *metav1.Condition `json:"ready"`
		Lists   []decide.List     `json:"lists"`
		Unknown []any             `json:"unknown"`
		Writes  []any             `json:"writes"`
	} `json:"passes"`
}

func (c commandLine) why(ctx context.Context, args ...string) why {
	GinkgoHelper()

	found := why{}
	out := c.succeed(ctx, append([]string{"why", "-o", "json"}, args...)...)
	Expect(json.Unmarshal([]byte(out), &found)).To(Succeed())

	return found
}

// secretValue must not be in any output.
const secretValue = "never-to-be-printed"

var _ = Describe("capstan why", Ordered, ContinueOnFailure, func() {
	var (
		w   *world
		cli commandLine
	)

	BeforeAll(func(ctx SpecContext) {
		w = newWorld(ctx)
		cli = newCommandLine(w)
		w.createOperatorDeployment(ctx)
		w.start()
	})

	type situation = func(context.Context, tiny, *v1alpha2.InfrastructureProvider)

	// create creates the resource of a tiny provider, after a change.
	create := func(change func(*tiny, *v1alpha2.InfrastructureProvider)) situation {
		return func(ctx context.Context, t tiny, p *v1alpha2.InfrastructureProvider) {
			change(&t, p)
			w.offer(ctx, t)
			Expect(w.client.Create(ctx, p)).To(Succeed())
		}
	}
	// installed is create for a provider that becomes healthy first.
	installed := func(then situation) situation {
		return func(ctx context.Context, t tiny, p *v1alpha2.InfrastructureProvider) {
			w.offer(ctx, t)
			Expect(w.client.Create(ctx, p)).To(Succeed())
			Eventually(w.read(ctx, p)).Should(beReady(t.version))
			then(ctx, t, p)
		}
	}
	unchanged := func(*tiny, *v1alpha2.InfrastructureProvider) {}
	ready := func(ctx context.Context, p v1alpha2.Provider) func(Gomega) *metav1.Condition {
		return func(g Gomega) *metav1.Condition { return conditions.Get(w.read(ctx, p)(g), v1alpha2.ReadyCondition) }
	}

	// explains makes a situation, and checks that the output explains the reason that is reported for it.
	explains := func(ctx context.Context, name, reason string, make situation, parts ...string) {
		GinkgoHelper()

		t := newTiny(name, "v1.0.0")
		p := t.resource()
		make(ctx, t, p)
		Eventually(ready(ctx, p)).Should(HaveField("Reason", reason))

		before := cli.writes()

		// What the operator has reported a moment ago may not be what it decides now.
		var out string

		matchers := []types.GomegaMatcher{
			Not(Or(ContainSubstring("The operator has reported"), ContainSubstring("has not seen"))),
			ContainSubstring("(" + reason + "): "),
		}
		for _, part := range parts {
			matchers = append(matchers, ContainSubstring(part))
		}

		Eventually(func() string {
			out = cli.succeed(ctx, "why", "infrastructure-"+name, "-n", p.Namespace)
			return out
		}).Should(And(matchers...))

		AddReportEntry(CurrentSpecReport().LeafNodeText, out)

		Expect(out).NotTo(Or(ContainSubstring(secretValue), ContainSubstring("not known, because")))
		Expect(cli.writes()).To(Equal(before))
	}

	const nothingLeft = "No row of the rules has found anything that is left to do."

	It("says that core is missing", func(ctx SpecContext) {
		explains(ctx, "early", v1alpha2.WaitingForCoreProviderReadyReason, create(unchanged),
			`"core is ready before what needs it" of change`, "exists in no namespace", "who ends it: The core provider")

		core := w.install(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))
		Expect(cli.succeed(ctx, "why", "cluster-api")).To(ContainSubstring(nothingLeft))
	})

	DescribeTable("names the cause", explains,
		Entry("the Secret is forgotten", "no-secret", v1alpha2.SecretNotFoundReason,
			create(func(_ *tiny, p *v1alpha2.InfrastructureProvider) {
				p.Spec.ConfigSecret = &v1alpha2.SecretReference{Name: "aws-variables"}
			}),
			`"without a plan nothing is changed" of change`, "answer: Secret no-secret/aws-variables", "does not exist",
			"who ends it: A user, who has to correct what the message names"),
		Entry("a variable has no value", "no-variable", v1alpha2.MissingVariablesReason,
			create(func(t *tiny, _ *v1alpha2.InfrastructureProvider) {
				t.components = strings.Replace(t.components, "${TINY_LEVEL:=info}", "${TINY_LEVEL}", 1)
			}),
			`"contracts fit, and variables and kinds exist" of change`, "TINY_LEVEL"),
		Entry("the version does not exist", "no-version", v1alpha2.VersionNotFoundReason,
			create(func(_ *tiny, p *v1alpha2.InfrastructureProvider) { p.Spec.Version = "v9.9.9" }),
			`"without a plan nothing is changed" of change`, "v9.9.9",
			"who ends it: A user, who has to correct what the message names"),
		Entry("the provider is in no catalog", "unheard-of", v1alpha2.UnknownProviderReason,
			create(func(_ *tiny, p *v1alpha2.InfrastructureProvider) { p.Spec.FetchConfig = nil }),
			`"without a plan nothing is changed" of change`, "spec.fetchConfig"),
		Entry("a provider has two resources", "twice", v1alpha2.MoreThanOneProviderInstanceExistsReason,
			installed(func(ctx context.Context, t tiny, p *v1alpha2.InfrastructureProvider) {
				source := t.configMap()
				*p = *t.resource()
				p.Namespace, source.Namespace = "another-system", "another-system"
				Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}})).To(Succeed())
				Expect(w.client.Create(ctx, source)).To(Succeed())
				Expect(w.client.Create(ctx, p)).To(Succeed())
			}),
			`"a cluster has each provider only once" of change`, "by the resource in namespace twice",
			"who ends it: The deletion of one of the resources"),
		Entry("a manager fits on no node", "hanging", v1alpha2.ProgressingReason,
			create(func(t *tiny, _ *v1alpha2.InfrastructureProvider) { *t = neverRunning(*t) }),
			`"a revision has a deadline" of care`, "hanging-controller-manager", "Unschedulable", "spec.release.timeout",
			"who ends it: The objects, when they become healthy"),
		Entry("a Job fails", "failing", v1alpha2.UnhealthyReason,
			create(func(t *tiny, p *v1alpha2.InfrastructureProvider) {
				*t = failing(*t)
				p.Spec.Release = &v1alpha2.ReleaseSpec{Retries: new(int32(0))}
			}),
			`"the release is compared with the plan" of change`, "what follows from the state: Stop", "prepare",
			"who ends it: A user, who changes the resource"),
		Entry("an account has no permissions", "powerless", v1alpha2.MissingPermissionsReason,
			create(func(_ *tiny, p *v1alpha2.InfrastructureProvider) { p.Spec.ServiceAccountName = "installer" }),
			"powerless:installer"),
		Entry("helm has uninstalled the release", "uninstalled", v1alpha2.ExternalChangeReason,
			installed(func(ctx context.Context, _ tiny, p *v1alpha2.InfrastructureProvider) {
				w.run(ctx, "helm", "uninstall", "--keep-history", v1alpha2.ReleaseName(p), "-n", p.Namespace)
			}),
			`"an uninstall by another program stays" of change`, "who ends it: A user"),
		Entry("the CRDs are of a newer version", "older", v1alpha2.UnsupportedProviderDowngradeReason,
			func(ctx context.Context, _ tiny, p *v1alpha2.InfrastructureProvider) {
				newer := newTiny("older", "v1.1.0").serving("v2", "v1")
				w.offer(ctx, newer)
				w.offer(ctx, newTiny("older", "v1.0.0").serving("v0"))

				p.Spec.Version = newer.version
				Expect(w.client.Create(ctx, p)).To(Succeed())
				Eventually(w.read(ctx, p)).Should(beReady(newer.version))
				update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })
			},
			`"CRDs are compared with those of the cluster" of change`, "v1.1.0 stays installed"),
		Entry("it is suspended", "suspended", v1alpha2.SuspendedReason,
			create(func(_ *tiny, p *v1alpha2.InfrastructureProvider) { p.Spec.Suspend = true }),
			`"a suspended provider is not changed" of begin`, "who ends it: A user, who sets spec.suspend to false"),
		Entry("nothing is wrong", "healthy", v1alpha2.HealthyReason, create(unchanged), nothingLeft),
		Entry("it is paused", "paused", v1alpha2.PausedReason,
			create(func(_ *tiny, p *v1alpha2.InfrastructureProvider) { p.Spec.Paused = true }), nothingLeft),
	)

	It("is part of what capstan debug collects", func(ctx SpecContext) {
		p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "no-variable", Name: "no-variable"}}
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Variables = map[string]string{"OTHER": secretValue} })

		folder, before := GinkgoT().TempDir(), cli.writes()
		archive := filepath.Join(folder, "found.tar.gz")
		out := cli.succeed(ctx, "debug", "no-variable", "hanging", "older", "--destination", archive)
		Expect(cli.writes()).To(Equal(before))
		Expect(exec.CommandContext(ctx, "tar", "-xzf", archive, "-C", folder).Run()).To(Succeed())

		read := func(name string) string {
			content := string(must(os.ReadFile(filepath.Join(folder, "found", name))))
			Expect(out).To(ContainSubstring(name))
			Expect(content).NotTo(ContainSubstring(secretValue))

			return content
		}
		of := func(name, file string) string {
			return read("providers/" + name + "/infrastructure-" + name + "/" + file)
		}

		Expect(read("versions.yaml")).To(And(
			ContainSubstring("kubernetes: v1."), ContainSubstring("capstan: "), ContainSubstring("command line: ")))
		Expect(read("operator/deployment.yaml")).To(ContainSubstring("--concurrency=4"))
		Expect(read("operator/configuration.yaml")).To(ContainSubstring("concurrency: "))
		Expect(of("no-variable", "resource.yaml")).To(ContainSubstring("OTHER: (hidden)"))
		Expect(of("no-variable", "why.txt")).To(ContainSubstring("TINY_LEVEL"))
		Expect(of("hanging", "status.txt")).To(ContainSubstring("hanging-controller-manager"))
		Expect(of("hanging", "pods.yaml")).To(ContainSubstring("Unschedulable"))
		Expect(of("hanging", "why.txt")).To(ContainSubstring(`"a revision has a deadline" of care`))
		Expect(of("older", "history.yaml")).To(ContainSubstring("version: v1.1.0"))
		Expect(of("older", "why.txt")).To(ContainSubstring("v1.1.0 stays installed"))
	})

	It("shows the same rows on the page of a provider", func(ctx SpecContext) {
		t := newTiny("on-page", "v1.0.0")
		p := t.resource()
		p.Spec.Variables = map[string]string{"TINY_LEVEL": secretValue}
		p.Spec.Version = "v9.9.9"

		w.offer(ctx, t)
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(ready(ctx, p)).Should(HaveField("Reason", v1alpha2.VersionNotFoundReason))

		site := openStatusPage(ctx, cli)
		before := cli.writes()
		found := cli.why(ctx, "infrastructure-on-page")
		shown := func() string { return site.read(ctx, "providers/InfrastructureProvider/on-page/on-page") }

		Eventually(shown).Should(ContainSubstring("Decided by the row"))

		for _, list := range found.Passes[0].Lists {
			Expect(shown()).To(ContainSubstring("<summary>Rows of " + list.Name + "</summary>"))

			for _, row := range list.Rows {
				if row.Verdict != "NotReached" {
					Expect(shown()).To(ContainSubstring("<strong>" + html.EscapeString(row.Name) + "</strong>"))
				}
			}
		}

		Expect(shown()).To(And(ContainSubstring("Who ends it: "), Not(ContainSubstring(secretValue))))
		Expect(cli.writes()).To(Equal(before))
	})

	Context("of a changed resource", func() {
		moving := newTiny("moving", "v1.0.0")
		p := moving.resource()

		BeforeAll(func(ctx SpecContext) {
			w.offer(ctx, moving)
			w.offer(ctx, newTiny("moving", "v1.1.0"))
			Expect(w.client.Create(ctx, p)).To(Succeed())
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
			Expect(w.client.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: moving.name, Name: "variables"},
				StringData: map[string]string{"TINY_LEVEL": secretValue},
			})).To(Succeed())
		})

		DescribeTable("says what then happens", func(ctx SpecContext, setting, reason string) {
			before := cli.writes()
			out := cli.succeed(ctx, "why", "infrastructure-moving", "--set", setting)
			forecast := cli.why(ctx, "infrastructure-moving", "--set", setting)

			AddReportEntry(setting, out)
			Expect(out).NotTo(ContainSubstring(secretValue))
			Expect(cli.writes()).To(Equal(before))

			change := map[string]any{}
			Expect(strvals.ParseInto(setting, change)).To(Succeed())
			w.run(ctx, "kubectl", "patch", "infrastructureprovider", "moving", "-n", "moving", "--type=merge", "-p",
				string(must(json.Marshal(change))))

			expected := forecast.Passes[len(forecast.Passes)-1].Ready
			Expect(expected.Reason).To(HavePrefix(reason), expected.Message)
			Eventually(func(g Gomega) {
				now := w.read(ctx, p)(g)
				g.Expect(now.GetStatus().ObservedGeneration).To(Equal(now.GetGeneration()))
				g.Expect(conditions.Get(now, v1alpha2.ReadyCondition)).To(And(
					HaveField("Status", expected.Status), HaveField("Reason", expected.Reason),
					HaveField("Message", expected.Message)))
			}).Should(Succeed())
		},
			Entry("another version", "spec.version=v1.1.0", v1alpha2.HealthyReason),
			Entry("a version that does not exist", "spec.version=v9.9.9", v1alpha2.VersionNotFoundReason),
			Entry("the version before", "spec.version=v1.0.0", v1alpha2.HealthyReason),
			Entry("paused", "spec.paused=true", v1alpha2.PausedReason),
			Entry("not paused", "spec.paused=false", v1alpha2.HealthyReason),
			Entry("suspended", "spec.suspend=true", v1alpha2.SuspendedReason),
			Entry("not suspended", "spec.suspend=false", v1alpha2.HealthyReason),
			Entry("a Secret that does not exist", "spec.configSecret.name=missing", v1alpha2.SecretNotFoundReason),
			Entry("a Secret that exists", "spec.configSecret.name=variables", v1alpha2.HealthyReason),
			Entry("an earlier revision", "spec.release.rollbackTo=1", v1alpha2.HealthyReason),
			Entry("an account without permissions", "spec.serviceAccountName=installer", ""),
		)

		It("says how a new provider is installed", func(ctx SpecContext) {
			t := newTiny("coming", "v1.0.0")
			w.offer(ctx, t)

			file := filepath.Join(GinkgoT().TempDir(), "coming.yaml")
			resource := t.resource()
			resource.SetGroupVersionKind(v1alpha2.InfrastructureProviderType.GroupVersionKind())
			Expect(os.WriteFile(file, must(yaml.Marshal(resource)), 0o600)).To(Succeed())

			before := cli.writes()
			forecast := cli.why(ctx, "-f", file)
			expected := forecast.Passes[len(forecast.Passes)-1].Ready
			Expect(expected.Reason).To(Equal(v1alpha2.HealthyReason), expected.Message)
			Expect(cli.writes()).To(Equal(before))
			Expect(gone(ctx, w, t.resource())()).To(BeTrue())

			Expect(w.client.Create(ctx, resource)).To(Succeed())
			Eventually(ready(ctx, resource)).Should(HaveField("Message", expected.Message))
		})
	})
})
