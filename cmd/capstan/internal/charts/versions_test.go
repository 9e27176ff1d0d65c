package charts

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/fakesource"
)

// configured writes a configuration file and returns its path.
func configured(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clusterctl.yaml")
	NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())

	return file
}

func TestProviders(t *testing.T) {
	clitest.WithoutConfiguration(t)
	g := NewWithT(t)
	out, _, err := clitest.Run(t.Context(), NewListCommand)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(MatchRegexp(`(?m)^TYPE +NAME +SOURCE +NOTE$`))
	g.Expect(out).
		To(MatchRegexp(`(?m)^InfrastructureProvider +aws ` +
			`+https://github\.com/kubernetes-sigs/cluster-api-provider-aws/releases/latest/infrastructure-components\.yaml$`))

	file := configured(
		t,
		"providers: [{name: aws, type: InfrastructureProvider, url: \"https://mirror.example.com/aws/x.yaml\"}]",
	)
	out, _, err = clitest.Run(t.Context(), NewListCommand, "--config", file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).
		To(MatchRegexp(`(?m)^InfrastructureProvider +aws +https://mirror\.example\.com/aws/x\.yaml +configured$`))

	out, _, err = clitest.Run(t.Context(), NewListCommand, "--config", file, "-o", "yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).
		To(ContainSubstring("- configured: true\n  label: infrastructure-aws\n  name: aws\n" +
			"  type: InfrastructureProvider\n  url: https://mirror.example.com/aws/x.yaml\n"))

	_, _, err = clitest.Run(t.Context(), NewListCommand, "-o", "xml")
	g.Expect(err).To(MatchError(`unknown --output "xml"; use one of table, json, yaml`))
}

func TestVersions(t *testing.T) {
	clitest.WithoutConfiguration(t)
	g := NewWithT(t)
	server := &fakesource.Server{}

	metadata := []byte("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n" +
		"releaseSeries: [{major: 1, minor: 1, contract: v1beta2}, {major: 1, minor: 0, contract: v1beta1}]")
	for _, version := range []string{"v0.9.0", "v1.0.0", "v1.0.1", "v1.1.0", "v1.2.0-rc.1"} {
		server.Publish("owner/tiny", version, map[string][]byte{"metadata.yaml": metadata})
	}

	g.Expect(server.Start()).To(Succeed())
	t.Cleanup(func() { _ = server.Stop() })
	file := configured(
		t,
		"providers: [{name: tiny, type: AddonProvider, "+
			"url: "+server.URL()+"/owner/tiny/releases/latest/addon-components.yaml}]",
	)

	for _, name := range []string{"addon-tiny", "addon/tiny", "AddonProvider/tiny", "tiny"} {
		out, _, err := clitest.Run(t.Context(), NewListCommand, name, "--config", file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(Equal("VERSION   CONTRACT\nv1.1.0    v1beta2\nv1.0.1    v1beta1\nv0.9.0\n"), name)
	}

	out, _, err := clitest.Run(t.Context(), NewListCommand, "tiny", "--config", file, "--all", "-o", "json")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).
		To(MatchJSON(`[
			{"version": "v1.2.0-rc.1"},
			{"version": "v1.1.0", "contract": "v1beta2"},
			{"version": "v1.0.1", "contract": "v1beta1"},
			{"version": "v1.0.0", "contract": "v1beta1"},
			{"version": "v0.9.0"}
		]`))

	g.Expect(server.Stop()).To(Succeed())

	for _, args := range [][]string{{"tiny"}, {"tiny", "--variables"}} {
		_, _, err = clitest.Run(t.Context(), NewListCommand, append(args, "--config", file)...)
		g.Expect(err).To(MatchError(And(
			HavePrefix("addon-tiny: "), HaveSuffix("; to read a mirror instead, add --chart-repository"))))
	}
}

func TestVersionsOfUnknownProvider(t *testing.T) {
	clitest.WithoutConfiguration(t)

	for name, message := range map[string]string{
		"infrastructure-unknown": "unknown provider infrastructure-unknown; `capstan providers` lists the known ones",
		"infrastructure-awz":     "unknown provider infrastructure-awz; did you mean infrastructure-aws? `capstan",
		"vshpere":                "unknown provider vshpere; did you mean vsphere? `capstan",
		"kubeadm": "there are several providers with the name kubeadm; use one of " +
			"bootstrap-kubeadm, control-plane-kubeadm",
	} {
		_, _, err := clitest.Run(t.Context(), NewListCommand, name)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(message)))
	}

	_, _, err := clitest.Run(t.Context(), NewListCommand, "aws", "azure")
	NewWithT(t).Expect(err).To(MatchError("expected at most one provider; usage: providers [NAME[:VERSION]] [flags]"))
}

// TestVariables: the variables of a version are read where it is published, or from a repository with its chart.
func TestVariables(t *testing.T) {
	clitest.WithoutConfiguration(t)
	g := NewWithT(t)

	folder, err := filepath.Abs("../../../../test/data/providers/infrastructure-aws")
	g.Expect(err).NotTo(HaveOccurred())
	registry, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: t.TempDir()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(registry.Stop)

	repository := "http://" + registry.Address
	_, _, err = clitest.Run(t.Context(), NewMirrorCommand, folder, "--charts-only", "--to", repository)
	g.Expect(err).NotTo(HaveOccurred())

	file := configured(t, "providers: [{name: aws, type: InfrastructureProvider, url: \"file://"+
		filepath.Join(folder, "latest", "infrastructure-components.yaml")+"\"}]")

	for _, args := range [][]string{
		{"infrastructure-aws", "--config", file},
		{"aws:v1.0.0", "--config", file},
		{"aws:v1.0.0", "--chart-repository", repository + "/charts"},
	} {
		out, _, err := clitest.Run(t.Context(), NewListCommand, append(args, "--variables")...)
		g.Expect(err).NotTo(HaveOccurred(), "%s", args)
		g.Expect(out).To(HavePrefix("VARIABLE                      DESCRIPTION\n"+
			"AWS_B64ENCODED_CREDENTIALS    Required.\n"+
			"AWS_CONTROLLER_IAM_ROLE       Optional, empty by default.\n"), "%s", args)
		g.Expect(out).To(ContainSubstring("\nCAPA_LOGLEVEL                 Optional, default \"0\".\n"))
	}

	out, _, err := clitest.Run(t.Context(), NewListCommand, "aws", "--config", file, "--variables", "-o", "json")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring(`"name": "AWS_B64ENCODED_CREDENTIALS",`))
	g.Expect(out).To(ContainSubstring(`"default": "0",`))

	out, _, err = clitest.Run(t.Context(), NewListCommand, "aws", "--chart-repository", repository+"/charts")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(HavePrefix("VERSION   CONTRACT\nv1.0.0"))

	for message, args := range map[string][]string{
		"--variables is for one provider; name it, such as infrastructure-aws": {"--variables"},
		"a version is for --variables; add that, or leave out :v1.0.0":         {"aws:v1.0.0"},
		"infrastructure-aws: version v9.0.0 is not available; the source has v": {
			"aws:v9.0.0", "--variables", "--config", file,
		},
	} {
		_, _, err := clitest.Run(t.Context(), NewListCommand, args...)
		g.Expect(err).To(MatchError(HavePrefix(message)))
	}
}
