package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// samples is a release with one of everything, and how its clusters are asked for.
const samples = "../../chartgen/supply/clustertemplate/testdata"

// generate runs `capstan generate cluster` and gives what it printed, and what it warned of.
func generate(ctx context.Context, arguments ...string) (out, warnings string, err error) {
	var stdout, stderr bytes.Buffer

	cmd := generateCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append([]string{"cluster"}, arguments...))
	err = cmd.ExecuteContext(ctx)

	return stdout.String(), stderr.String(), err
}

// withoutConfiguration hides the configuration and the clusters of whoever runs the tests.
func withoutConfiguration(t *testing.T) {
	t.Helper()

	for _, name := range []string{"HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, t.TempDir())
	}

	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
}

func TestGenerateClusterPrintsManifests(t *testing.T) {
	withoutConfiguration(t)
	g := NewWithT(t)
	out, warnings, err := generate(
		t.Context(),
		"dev",
		"--from",
		samples,
		"--infrastructure",
		"sample:v1.0.0",
		"--flavor",
		"only",
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())
	g.Expect(out).
		To(Equal("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dev\n  namespace: default\n"), "without a kubeconfig the namespace is default")
}

func TestGenerateClusterTakesFlagsThenEnvironmentThenFile(t *testing.T) {
	withoutConfiguration(t)
	file := filepath.Join(t.TempDir(), "variables.yaml")
	NewWithT(
		t,
	).Expect(os.WriteFile(file, []byte("REGION: file\nSSH_KEY_NAME: file\nWORKER_MACHINE_COUNT: 7\nKUBERNETES_VERSION: v1.30.0\nCONTROL_PLANE_MACHINE_COUNT: 5\n"), 0o600)).
		To(Succeed())
	t.Setenv("REGION", "environment")
	t.Setenv("KUBERNETES_VERSION", "v1.31.0")
	t.Setenv("CONTROL_PLANE_MACHINE_COUNT", "3")
	out, _, err := generate(
		t.Context(),
		"dev",
		"--from",
		samples,
		"-n",
		"team",
		"--config",
		file,
		"--control-plane-machine-count",
		"1",
	)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).
		To(ContainSubstring("  bastion: environment-bastion\n  controlPlane: 1\n  key: file\n  region: environment\n  version: v1.31.0\n  workers: 7\n"))
	g.Expect(out).To(ContainSubstring("name: dev\n  namespace: team\n"))
}

func TestGenerateClusterWarnsOfAnAbsentClass(t *testing.T) {
	withoutConfiguration(t)
	g := NewWithT(t)
	out, warnings, err := generate(t.Context(), "dev", "--from", samples, "--flavor", "foreign-class")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(HavePrefix("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\n"))
	g.Expect(warnings).
		To(Equal("Warning: the cluster needs ClusterClass default/foreign, which infrastructure-sample v1.1.0 does not bring; make sure that the management cluster has it\n"))
}

func TestGenerateClusterListsVariables(t *testing.T) {
	withoutConfiguration(t)

	for flavor, want := range map[string]string{
		"": `Required Variables:
  - KUBERNETES_VERSION
  - REGION
  - SSH_KEY_NAME

Optional Variables:
  - BASTION_NAME                 (defaults to "${REGION}-bastion")
  - CLUSTER_NAME                 (defaults to dev)
  - CONTROL_PLANE_MACHINE_COUNT  (defaults to 1)
  - NAMESPACE                    (defaults to team)
  - NOTE                         (defaults to "it's free")
  - POD_CIDR                     (defaults to "[\"192.168.0.0/16\"]")
  - WORKER_MACHINE_COUNT         (defaults to 0)

`,
		"own-class": "\nOptional Variables:\n  - CLUSTER_NAME  (defaults to dev)\n\n",
	} {
		out, _, err := generate(t.Context(), "dev", "--from", samples, "--flavor", flavor, "-n", "team", "--list-variables")
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), flavor)
		NewWithT(t).Expect(out).To(Equal(want), flavor)
	}
}

func TestGenerateClusterSaysWhatIsWrong(t *testing.T) {
	withoutConfiguration(t)

	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no name":                 {nil, "give the cluster's name, and nothing else beside the flags"},
		"two names":               {[]string{"dev", "prod"}, "give the cluster's name, and nothing else beside the flags"},
		"source that is nowhere":  {[]string{"dev", "--from", "nowhere"}, "--from: stat nowhere: no such file or directory; give cluster, a chart's .tgz or a folder"},
		"source that is no chart": {[]string{"dev", "--from", "generate.go"}, "file generate.go: chart archive: not gzip"},
		"provider's notation":     {[]string{"dev", "--from", samples, "-i", "aws:"}, `infrastructure provider "aws:" is not of the form name[:version]`},
		"flavor":                  {[]string{"dev", "--from", samples, "-f", "none"}, `infrastructure-sample v1.1.0 has no flavor "none"; choose a flavor: `},
		"default template":        {[]string{"dev", "--from", samples, "-i", "sample:v1.0.0"}, "infrastructure-sample v1.0.0 has no default template; choose a flavor: only"},
		"flavor, listing":         {[]string{"dev", "--from", samples, "-f", "none", "--list-variables"}, `infrastructure-sample v1.1.0 has no flavor "none"; choose a flavor: `},
		"configuration file":      {[]string{"dev", "--from", samples, "--config", "nowhere"}, "configuration file: "},
		"context":                 {[]string{"dev", "--from", samples, "--context", "nowhere"}, "find the current namespace: "},
		"no cluster":              {[]string{"dev", "-n", "team"}, "find the management cluster: "},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, _, err := generate(t.Context(), test.arguments...)
			g.Expect(err).To(MatchError(HavePrefix(test.want)))
			g.Expect(out).To(BeEmpty())
		})
	}
}
