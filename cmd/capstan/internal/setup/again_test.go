package setup

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

// existingAWS is a provider that exists, as the planner finds it: with the variables of its chart, of which
// some have given values.
func existingAWS(secretName string) *provider {
	resource := &v1alpha2.InfrastructureProvider{}
	resource.Namespace, resource.Name = "capa-system", "aws"
	resource.Spec.SecretName = secretName
	resource.Spec.Variables = map[string]string{"INLINE": "inline-value", "INLINE_OLD": "inline-before"}

	return &provider{resource: resource, exists: true, variables: []variable{
		{name: "EQUAL", value: "equal-value", from: "environment"},
		{name: "INLINE", value: "inline-value", from: "environment"},
		{name: "INLINE_OLD", value: "inline-after", from: "--variables"},
		{name: "NEW", value: "added-token", from: "configuration file"},
		{name: "NOT_GIVEN", required: true},
		{name: "TOKEN", required: true, value: "right-token", from: "environment"},
	}}
}

func existingSecret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: name},
		Data: map[string][]byte{
			"EQUAL": []byte("equal-value"), "NOT_GIVEN": []byte("kept"), "TOKEN": []byte("wrong-token"),
			"INLINE": []byte("inline-value"),
		},
	}
}

// again plans and carries out an installation of a provider that exists, and returns what was printed.
func again(t *testing.T, p *provider, objects ...client.Object) (*cli.Cluster, string) {
	t.Helper()

	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(v1alpha2.AddToScheme(scheme)).To(Succeed())

	cluster := &cli.Cluster{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, p.resource)...).Build(),
	}
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	o := &options{Options: &cli.Options{IOStreams: streams}, wait: &cli.WaitFlags{}}
	plan := &setupPlan{providers: []*provider{p}}

	g.Expect(p.keepChanged(t.Context(), cluster)).To(Succeed())
	plan.print(&cli.Printer{Writer: out})
	g.Expect(incomplete(plan.providers, "set them")).To(Succeed())
	g.Expect(o.carryOut(t.Context(), cluster, plan)).To(Succeed())

	clitest.NoParts(t, out.String()+errOut.String(),
		"equal-v", "inline-v", "inline-before", "inline-after", "added-token", "right-token", "wrong-token")

	_, printed, _ := strings.Cut(out.String(), " exists\n")

	return cluster, printed
}

func read(t *testing.T, cluster *cli.Cluster, name string, object client.Object) {
	t.Helper()

	key := client.ObjectKey{Namespace: "capa-system", Name: name}
	NewWithT(t).Expect(cluster.Client.Get(t.Context(), key, object)).To(Succeed())
}

// TestInitAgain: given values that differ from those in the cluster are written, all others are kept.
func TestInitAgain(t *testing.T) {
	const secretName = "infrastructure-aws-variables"

	g := NewWithT(t)
	cluster, printed := again(t, existingAWS(secretName), existingSecret(secretName))
	changed := "INLINE_OLD (from --variables), NEW (from configuration file), TOKEN (from environment)"
	g.Expect(printed).To(Equal("  Secret capa-system/infrastructure-aws-variables: changes " + changed + "\n" +
		"Secret capa-system/infrastructure-aws-variables updated: " + changed + "\n"))

	secret := &corev1.Secret{}
	read(t, cluster, secretName, secret)
	g.Expect(secret.Data).To(Equal(existingSecret(secretName).Data), "which the API server adds the following to")
	g.Expect(secret.StringData).To(Equal(map[string]string{
		"INLINE_OLD": "inline-after", "NEW": "added-token", "TOKEN": "right-token",
	}))

	resource := &v1alpha2.InfrastructureProvider{}
	read(t, cluster, "aws", resource)
	g.Expect(resource.Annotations).To(HaveKey(v1alpha2.ReconcileRequestAnnotation), "a healthy provider reads it, too")
	g.Expect(resource.Spec.SecretName).To(Equal(secretName))
}

// TestInitAgainWithoutSecret: a provider that needed none gets one.
func TestInitAgainWithoutSecret(t *testing.T) {
	g := NewWithT(t)
	cluster, printed := again(t, existingAWS(""))
	g.Expect(printed).To(ContainSubstring("Secret capa-system/infrastructure-aws-variables updated: EQUAL (from "))

	resource := &v1alpha2.InfrastructureProvider{}
	read(t, cluster, "aws", resource)
	g.Expect(resource.Spec.SecretName).To(Equal("infrastructure-aws-variables"))
}

// TestInitAgainWithTheSecretOfAUser: a Secret that the command has not created is not changed, and not passed over.
func TestInitAgainWithTheSecretOfAUser(t *testing.T) {
	g := NewWithT(t)
	cluster, printed := again(t, existingAWS("own"), existingSecret("own"))
	g.Expect(printed).To(Equal("  Secret capa-system/own has other values than the given ones, and stays as it is, " +
		"because its name is not infrastructure-aws-variables: INLINE_OLD (from --variables), NEW (from configuration " +
		"file), TOKEN (from environment)\n"))

	secret := &corev1.Secret{}
	read(t, cluster, "own", secret)
	g.Expect(secret.Data).To(HaveKeyWithValue("TOKEN", []byte("wrong-token")))
}

// TestInitAgainWithTheSameValues: nothing is written.
func TestInitAgainWithTheSameValues(t *testing.T) {
	const secretName = "infrastructure-aws-variables"

	g := NewWithT(t)
	p := existingAWS(secretName)
	p.variables = p.variables[:2]

	cluster, printed := again(t, p, existingSecret(secretName))
	g.Expect(printed).To(BeEmpty())

	resource := &v1alpha2.InfrastructureProvider{}
	read(t, cluster, "aws", resource)
	g.Expect(resource.Annotations).To(BeEmpty())
}

func TestVersionOfExistingProvider(t *testing.T) {
	for name, c := range map[string]struct{ exists, wanted, err string }{
		"no wanted version":       {"v1.13.5", "", ""},
		"the same":                {"v1.13.5", "v1.13.5", ""},
		"another notation":        {"v1.13.5", "1.13.5", ""},
		"the same range":          {"~1.13", "~1.13", ""},
		"what a range has chosen": {"v1.13.5", "~1.13", ""},
		"another version": {
			"v1.13.5", "v1.14.0", "InfrastructureProvider capa-system/aws exists with spec.version v1.13.5, not v1.14.0; " +
				"to change it, run `capstan upgrade apply infrastructure-aws:v1.14.0`",
		},
		"an older version": {
			"v1.13.5", "v1.12.0", "run `capstan upgrade apply infrastructure-aws:v1.12.0 --allow-downgrade`",
		},
		"outside of the range": {
			"v1.12.0", "~1.13", "InfrastructureProvider capa-system/aws exists with spec.version v1.12.0, not ~1.13; " +
				"to change it, run `capstan upgrade apply --version '~1.13' --only infrastructure-aws`",
		},
		"another range":   {"~1.12", "~1.13", "exists with spec.version ~1.12, not ~1.13; "},
		"a range instead": {"~1.13", "v1.13.5", "exists with spec.version ~1.13, not v1.13.5; "},
		"no version":      {"", "v1.13.5", "exists with spec.version not set, not v1.13.5; "},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := existingAWS("")
			p.resource.GetSpec().Version = c.exists
			p.resource.GetStatus().InstalledVersion = new("v1.13.0")
			w := wanted{kind: v1alpha2.InfrastructureProviderType, name: "aws", version: c.wanted}

			if c.err == "" {
				g.Expect(w.checkVersion(p.resource)).To(Succeed())
			} else {
				g.Expect(w.checkVersion(p.resource)).To(MatchError(ContainSubstring(c.err)))
			}
		})
	}
}
