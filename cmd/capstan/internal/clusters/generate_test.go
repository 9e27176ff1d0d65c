package clusters

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

// samples is a folder with a provider that has a template of each kind.
const samples = "../../../../chartgen/supply/clustertemplate/testdata"

// generate runs `capstan generate cluster`.
func generate(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	return clitest.Run(ctx, NewGenerateCommand, append([]string{"cluster"}, args...)...)
}

func TestGenerateCluster(t *testing.T) {
	clitest.WithoutConfiguration(t)
	g := NewWithT(t)
	out, warnings, err := generate(
		t.Context(),
		"dev",
		"--source",
		samples,
		"--infrastructure",
		"sample:v1.0.0",
		"--flavor",
		"only",
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())
	g.Expect(out).
		To(Equal("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dev\n  namespace: default\n"),
			"without a kubeconfig the namespace is default")
}

func TestGenerateClusterVariables(t *testing.T) {
	clitest.WithoutConfiguration(t)
	file := filepath.Join(t.TempDir(), "variables.yaml")
	NewWithT(
		t,
	).Expect(os.WriteFile(file, []byte("REGION: file\nSSH_KEY_NAME: file\nWORKER_MACHINE_COUNT: 7\n"+
		"KUBERNETES_VERSION: v1.30.0\nCONTROL_PLANE_MACHINE_COUNT: 5\n"), 0o600)).
		To(Succeed())
	t.Setenv("REGION", "environment")
	t.Setenv("KUBERNETES_VERSION", "v1.31.0")
	t.Setenv("CONTROL_PLANE_MACHINE_COUNT", "3")
	out, _, err := generate(
		t.Context(),
		"dev",
		"--source",
		samples,
		"--target-namespace",
		"team",
		"--config",
		file,
		"--control-plane-machine-count",
		"1",
	)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).
		To(ContainSubstring("  bastion: environment-bastion\n  controlPlane: 1\n  key: file\n  region: environment\n" +
			"  version: v1.31.0\n  workers: 7\n"))
	g.Expect(out).To(ContainSubstring("name: dev\n  namespace: team\n"))
}

func TestGenerateClusterAbsentClass(t *testing.T) {
	clitest.WithoutConfiguration(t)
	g := NewWithT(t)
	out, warnings, err := generate(t.Context(), "dev", "--source", samples, "--flavor", "foreign-class")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(HavePrefix("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\n"))
	g.Expect(warnings).
		To(Equal("Warning: the cluster needs ClusterClass default/foreign, which infrastructure-sample v1.1.0 does not " +
			"contain; make sure that it exists in the management cluster\n"))
}

func TestGenerateClusterListVariables(t *testing.T) {
	clitest.WithoutConfiguration(t)

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
		out, _, err := generate(
			t.Context(),
			"dev",
			"--source",
			samples,
			"--flavor",
			flavor,
			"--target-namespace",
			"team",
			"--list-variables",
		)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), flavor)
		NewWithT(t).Expect(out).To(Equal(want), flavor)
	}
}

func TestGenerateClusterErrors(t *testing.T) {
	clitest.WithoutConfiguration(t)

	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no name": {nil, "expected the name of one cluster; usage: generate cluster NAME"},
		"two names": {
			[]string{"dev", "prod"},
			"expected the name of one cluster; usage: generate cluster NAME",
		},
		"missing source": {
			[]string{"dev", "--source", "nowhere"},
			"--source: stat nowhere: no such file or directory; use cluster, a chart's .tgz file or a folder",
		},
		"source that is not a chart": {
			[]string{"dev", "--source", "generate.go"},
			"file generate.go: chart archive: not gzip",
		},
		"provider's notation": {
			[]string{"dev", "--source", samples, "-i", "aws:"},
			`infrastructure provider "aws:" is not of the form name[:version]`,
		},
		"flavor": {
			[]string{"dev", "--source", samples, "--flavor", "none"},
			`infrastructure-sample v1.1.0 has no flavor "none"; choose a flavor: `,
		},
		"default template": {
			[]string{"dev", "--source", samples, "-i", "sample:v1.0.0"},
			"infrastructure-sample v1.0.0 has no default template; choose a flavor: only",
		},
		"flavor, listing": {
			[]string{"dev", "--source", samples, "--flavor", "none", "--list-variables"},
			`infrastructure-sample v1.1.0 has no flavor "none"; choose a flavor: `,
		},
		"configuration file": {[]string{"dev", "--source", samples, "--config", "nowhere"}, "configuration file: "},
		"context": {
			[]string{"dev", "--source", samples, "--context", "nowhere"},
			"find the current namespace: ",
		},
		"no cluster": {[]string{"dev", "--target-namespace", "team"}, "find the management cluster: "},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, _, err := generate(t.Context(), test.arguments...)
			g.Expect(err).To(MatchError(HavePrefix(test.want)))
			g.Expect(out).To(BeEmpty())
		})
	}
}
