package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// TestQuickStart runs the commands of the quick start in order on a control plane. It differs from a
// real cluster in two ways: the chart is taken from this checkout, and the operator runs as a local
// process, because containers do not run on simulated nodes. The providers are the samples.
func TestQuickStart(t *testing.T) {
	c := start(t)
	folder := t.TempDir()
	config := configuration(t, folder)

	var operator *harness.Operator

	log := filepath.Join(folder, "operator.log")

	t.Cleanup(func() {
		if t.Failed() {
			data, _ := os.ReadFile(log)
			t.Logf("the operator's log:\n%s", data)
		}
	})

	path := strings.Join([]string{
		filepath.Dir(program(t, "capstan")),
		filepath.Dir(c.Binary("kubectl")),
		os.Getenv("PATH"),
	}, ":")

	for _, b := range blocks(t, "sh") {
		if b.page != "docs/quick-start.md" {
			continue
		}

		script := strings.ReplaceAll(b.text, "oci://ghcr.io/capstan-project/charts/capstan", "charts/capstan")
		run := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
		run.Dir = root

		run.Env = append(
			os.Environ(),
			"KUBECONFIG="+c.Kubeconfig(),
			"HOME="+filepath.Join(folder, "home"),
			"PATH="+path,
			"XDG_CONFIG_HOME="+filepath.Join(folder, "config"),
		)

		out, err := run.CombinedOutput()
		t.Logf("%s\n%s", b, out)

		if err != nil {
			t.Fatalf("%s: %s", b, err)
		}

		if operator == nil {
			operator, err = harness.StartOperator(c.Bed, program(t, "operator"), log, "--config="+config)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { _ = operator.Stop() })
		}
	}

	NewWithT(t).Expect(operator).NotTo(BeNil(), "the page has no commands")
}

// configuration returns the path of a configuration file that takes the providers from the samples. It is a copy of the
// page's, where capstan looks for it.
func configuration(t *testing.T, folder string) string {
	t.Helper()
	g := NewWithT(t)
	absolute, err := filepath.Abs(filepath.Join(root, testproviders.Samples))
	g.Expect(err).NotTo(HaveOccurred())
	t.Setenv(testproviders.Variable, absolute)

	text, err := os.ReadFile(filepath.Join(root, "test/data/clusterctl.yaml"))
	g.Expect(err).NotTo(HaveOccurred())

	path := filepath.Join(folder, "config", "cluster-api", "clusterctl.yaml")
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(path, text, 0o600)).To(Succeed())

	return path
}
