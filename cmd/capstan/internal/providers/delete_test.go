package providers

import (
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

func TestDeleteArguments(t *testing.T) {
	g := NewWithT(t)
	clitest.WithoutConfiguration(t)

	for _, args := range [][]string{nil, {"aws", "--all"}} {
		_, _, err := clitest.Run(t.Context(), NewDeleteCommand, args...)
		g.Expect(err).To(MatchError(
			"expected either providers or --all; usage: delete {PROVIDER... | --all} [flags]"))
	}
}

func TestDeleteEffect(t *testing.T) {
	g := NewWithT(t)
	meta := metav1.ObjectMeta{Namespace: "capa-system", Name: "aws"}
	removable := &effect{provider: &v1alpha2.InfrastructureProvider{ObjectMeta: meta}}
	held := &effect{provider: &v1alpha2.BootstrapProvider{ObjectMeta: meta}}

	removable.add("release %s", "infrastructure-aws")
	held.add("release %s", "bootstrap-aws")
	held.block("it is %s", "suspended")

	print := func(e *effect) string {
		return clitest.Printed(t, cli.Printer{}, func(p *cli.Printer) error {
			p.Tree(e.tree())
			return nil
		})
	}
	g.Expect(print(removable)).To(Equal("InfrastructureProvider capa-system/aws would be removed\n" +
		"└─ release infrastructure-aws\n"))
	g.Expect(print(held)).To(Equal("BootstrapProvider capa-system/aws cannot be removed now\n" +
		"├─ release bootstrap-aws\n└─ blocked: it is suspended\n"))
	g.Expect(refusal([]*effect{removable})).To(Succeed())
	g.Expect(refusal([]*effect{removable, held})).To(MatchError("nothing is deleted, because not all providers can be " +
		"removed:\n  BootstrapProvider capa-system/aws: it is suspended"))
}

// TestKeptCRDs: CRDs that stay are named, unless their provider stays as well, and all of them without the operator.
func TestKeptCRDs(t *testing.T) {
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "a.example.com", Labels: map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-aws"},
	}}

	scheme := runtime.NewScheme()
	NewWithT(t).Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	cluster := &cli.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(definition).Build()}

	for keep, printed := range map[string]gomegatypes.GomegaMatcher{
		"":     HavePrefix("1 CRD kept; to delete them "),
		"true": BeEmpty(),
	} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		o := &deleteOptions{Options: &cli.Options{IOStreams: streams}}

		p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Name: "aws"}}
		p.Annotations = map[string]string{v1alpha2.KeepInstalledAnnotation: keep}

		o.printKept(t.Context(), cluster, []v1alpha2.Provider{p})
		NewWithT(t).Expect(out.String()).To(printed)

		out.Reset()
		cluster.PrintKept(t.Context(), o.Options, selection.Exists)
		NewWithT(t).Expect(out.String()).To(Equal("1 CRD kept; to delete them with all objects of their kinds: " +
			"kubectl delete crd -l 'cluster.x-k8s.io/provider'\n"))
	}
}

func TestCoreIsNeeded(t *testing.T) {
	g := NewWithT(t)

	provider := func(p v1alpha2.Provider, name string) v1alpha2.Provider {
		p.SetName(name)
		p.SetUID(types.UID(name))
		p.GetStatus().Release = &v1alpha2.ReleaseStatus{}

		return p
	}
	core := provider(&v1alpha2.CoreProvider{}, "cluster-api")
	selected := provider(&v1alpha2.InfrastructureProvider{}, "aws")
	staying := provider(&v1alpha2.InfrastructureProvider{}, "docker")
	remote := provider(&v1alpha2.InfrastructureProvider{}, "remote")
	remote.GetSpec().KubeConfig = &v1alpha2.KubeConfig{}

	absent := provider(&v1alpha2.InfrastructureProvider{}, "absent")
	absent.GetStatus().Release = nil

	c := &deleteChecker{
		all:      []v1alpha2.Provider{core, selected, staying, remote, absent},
		selected: []v1alpha2.Provider{core, selected},
	}
	g.Expect(c.needCore(core)).To(ConsistOf("infrastructure-docker"))
	g.Expect(c.needCore(selected)).To(BeEmpty())
}
