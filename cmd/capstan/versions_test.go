package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/test/fakesource"
)

// run runs a command and gives what it printed.
func run(t *testing.T, cmd *cobra.Command, arguments ...string) (string, error) {
	t.Helper()

	var out bytes.Buffer

	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&out)
	cmd.SetArgs(arguments)
	err := cmd.ExecuteContext(t.Context())

	return out.String(), err
}

// configured writes a configuration file.
func configured(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clusterctl.yaml")
	NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())

	return file
}

func TestProvidersListsWhatIsKnown(t *testing.T) {
	withoutConfiguration(t)
	g := NewWithT(t)
	out, err := run(t, providersCommand())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(MatchRegexp(`(?m)^TYPE +NAME +SOURCE +NOTE$`))
	g.Expect(out).
		To(MatchRegexp(`(?m)^InfrastructureProvider +aws +https://github\.com/kubernetes-sigs/cluster-api-provider-aws/releases/latest/infrastructure-components\.yaml$`))

	file := configured(
		t,
		"providers: [{name: aws, type: InfrastructureProvider, url: \"https://mirror.example.com/aws/x.yaml\"}]",
	)
	out, err = run(t, providersCommand(), "--config", file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).
		To(MatchRegexp(`(?m)^InfrastructureProvider +aws +https://mirror\.example\.com/aws/x\.yaml +configured$`))

	out, err = run(t, providersCommand(), "--config", file, "-o", "yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).
		To(ContainSubstring("- configured: true\n  label: infrastructure-aws\n  name: aws\n  type: InfrastructureProvider\n  url: https://mirror.example.com/aws/x.yaml\n"))

	_, err = run(t, providersCommand(), "-o", "xml")
	g.Expect(err).To(MatchError("--output xml is unknown; choose table, json or yaml"))
}

func TestVersionsListsWhatIsOffered(t *testing.T) {
	withoutConfiguration(t)
	g := NewWithT(t)
	server := &fakesource.Server{Token: "t0ken"}

	metadata := []byte("releaseSeries: [{major: 1, minor: 1, contract: v1beta2}, {major: 1, minor: 0, contract: v1beta1}]")
	for _, version := range []string{"v0.9.0", "v1.0.0", "v1.0.1", "v1.1.0", "v1.2.0-rc.1"} {
		server.Publish("owner/tiny", version, map[string][]byte{"metadata.yaml": metadata})
	}

	g.Expect(server.Start()).To(Succeed())
	t.Cleanup(func() { _ = server.Stop() })
	t.Setenv("GITHUB_TOKEN", "t0ken")
	file := configured(
		t,
		"providers: [{name: tiny, type: AddonProvider, url: "+server.URL()+"/owner/tiny/releases/latest/addon-components.yaml}]",
	)

	for _, name := range []string{"addon-tiny", "addon/tiny", "AddonProvider/tiny", "tiny"} {
		out, err := run(t, versionsCommand(), name, "--config", file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(Equal("VERSION   CONTRACT\nv1.1.0    v1beta2\nv1.0.1    v1beta1\nv0.9.0\n"), name)
	}

	out, err := run(t, versionsCommand(), "tiny", "--config", file, "--all", "-o", "json")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).
		To(MatchJSON(`[{"version": "v1.2.0-rc.1"}, {"version": "v1.1.0", "contract": "v1beta2"}, {"version": "v1.0.1", "contract": "v1beta1"},
		{"version": "v1.0.0", "contract": "v1beta1"}, {"version": "v0.9.0"}]`))
}

func TestVersionsOfAProviderThatIsNotKnown(t *testing.T) {
	withoutConfiguration(t)

	for name, message := range map[string]string{
		"infrastructure-nobody": "no InfrastructureProvider nobody is known; `capstan providers` lists those that are",
		"kubeadm":               "several providers are called kubeadm; choose one: bootstrap-kubeadm, control-plane-kubeadm",
	} {
		_, err := run(t, versionsCommand(), name)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(message)))
	}

	_, err := run(t, versionsCommand())
	NewWithT(t).Expect(err).To(MatchError("give one provider: capstan versions PROVIDER"))
}
