package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// TestQuickStart runs the commands of the quick start in order on a control plane. It differs from a
// real cluster in two ways: the chart is taken from this checkout, and the operator runs as a local
// process, because containers do not run on simulated nodes. The providers come from a local
// repository.
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

// configuration writes a configuration file in clusterctl's format that takes the providers from a
// local repository, and returns its path. The repository is PROVIDERS, or else the samples.
func configuration(t *testing.T, folder string) string {
	t.Helper()

	repository, _ := testproviders.FolderOrSamples(root)

	repository, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}

	var text strings.Builder
	text.WriteString("providers:\n")

	for label, file := range map[string]string{
		"cluster-api": "core", "bootstrap-kubeadm": "bootstrap", "control-plane-kubeadm": "control-plane",
		"infrastructure-docker": "infrastructure", "infrastructure-aws": "infrastructure",
	} {
		kind, name := v1alpha2.ParseLabel(label)
		url := fmt.Sprintf("file://%s/%s/latest/%s-components.yaml", repository, label, file)
		fmt.Fprintf(&text, "- {name: %s, type: %s, url: %q}\n", name, kind, url)
	}

	path := filepath.Join(folder, "config", "cluster-api", "clusterctl.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}
