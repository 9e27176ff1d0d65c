package cli

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func completable() []v1alpha2.Provider {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: name + "-system", Name: name}
	}
	aws := &v1alpha2.InfrastructureProvider{ObjectMeta: meta("aws")}
	aws.Status.InstalledVersion = new("v2.10.3")
	aws.Status.AvailableUpgrades = []v1alpha2.AvailableUpgrade{{Version: "v2.11.1"}, {Version: "v2.10.4"}}

	return []v1alpha2.Provider{
		&v1alpha2.CoreProvider{ObjectMeta: meta("cluster-api")},
		&v1alpha2.BootstrapProvider{ObjectMeta: meta("kubeadm")},
		aws,
	}
}

func TestCompleteNames(t *testing.T) {
	for _, c := range []struct {
		word string
		args []string
		want []string
	}{
		{"", nil, []string{
			"cluster-api\tnot installed in cluster-api-system",
			"bootstrap-kubeadm\tnot installed in kubeadm-system",
			"infrastructure-aws\tv2.10.3 in aws-system",
		}},
		{"infrastructure-", nil, []string{"infrastructure-aws\tv2.10.3 in aws-system"}},
		{"infrastructure/", nil, []string{"infrastructure/aws\tv2.10.3 in aws-system"}},
		{"aw", nil, []string{"aws\tv2.10.3 in aws-system"}},
		{"", []string{"infrastructure-aws", "cluster-api"}, []string{"bootstrap-kubeadm\tnot installed in kubeadm-system"}},
		{"azure", nil, nil},
	} {
		NewWithT(t).Expect(completeNames(completable(), c.args, c.word)).To(Equal(c.want), c.word)
	}
}

func TestCompleteUpgrades(t *testing.T) {
	g := NewWithT(t)
	g.Expect(completeUpgrades(completable(), "infrastructure-aws")).To(Equal(
		[]string{"infrastructure-aws:v2.11.1", "infrastructure-aws:v2.10.4"}))
	g.Expect(completeUpgrades(completable(), "cluster-api")).To(BeEmpty())
}

// Completion uses the cluster that the command line selects, with all connection flags.
func TestCopyFlags(t *testing.T) {
	g := NewWithT(t)
	from, to := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)

	AddClusterFlags(from)
	from.Bool("all", false, "")
	AddClusterFlags(to)
	g.Expect(from.Parse([]string{"--all", "--context=other", "-n=ns", "--as-group=a", "--as-group=b"})).To(Succeed())
	copyFlags(to, from)

	g.Expect(to.GetString("context")).To(Equal("other"))
	g.Expect(to.GetString("namespace")).To(Equal("ns"))
	g.Expect(to.GetStringArray("as-group")).To(Equal([]string{"a", "b"}))
}

// Without a cluster there is nothing to complete, and no error that would disturb the shell.
func TestCompletionWithoutCluster(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	cmd := &cobra.Command{Use: "test"}
	AddClusterFlags(cmd.Flags())
	cmd.SetContext(t.Context())

	for _, complete := range []cobra.CompletionFunc{
		CompleteProvider, CompleteProviders, CompleteProviderVersions, completeNamespaces,
	} {
		found, _ := complete(cmd, nil, "")
		g.Expect(found).To(BeEmpty())
	}
}

func TestCompleteContexts(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{apiVersion: v1, kind: Config, contexts: [{name: one, context: {}}, {name: two, context: {}}]}"
	g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())

	cmd := &cobra.Command{Use: "test"}
	AddClusterFlags(cmd.Flags())
	g.Expect(cmd.Flags().Set("kubeconfig", file)).To(Succeed())

	found, directive := completeContexts(cmd, nil, "")
	g.Expect(found).To(Equal([]string{"one", "two"}))
	g.Expect(directive).To(Equal(cobra.ShellCompDirectiveNoFileComp))
}
