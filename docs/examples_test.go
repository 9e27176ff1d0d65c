package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// TestExamples runs the first example in the help of each command that needs a cluster, in an order in which users
// would. The others are run by a test of the program itself. The operator is a local process, so its configuration is
// not found in the cluster, but given to the commands that need it.
func TestExamples(t *testing.T) {
	g := NewWithT(t)
	b := bedtest.Start(t, bed.Options{CRDs: harness.OwnCRDs()})

	_, err := harness.PrepareForTest(t.Context(), b.Config())
	g.Expect(err).NotTo(HaveOccurred())

	w := newExampleFolder(t, b)
	operator, err := harness.StartOperator(
		b, program(t, "operator"), filepath.Join(w.folder, "operator.log"), "--config="+w.config)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = operator.Stop() })

	w.run(t, "kubectl apply --server-side -f resources.yaml")
	w.run(t, "kubectl wait capstan --all --all-namespaces --for=condition=Ready --timeout=5m")

	commands := usages(t)

	for _, command := range []string{
		"status", "version", "history", "diff", "permissions", "audit",
		"upgrade plan", "upgrade apply", "rollback", "suspend", "resume", "pause", "unpause", "adopt", "delete",
	} {
		example, flags := commands[command].example(), commands[command].flags
		g.Expect(example).To(HavePrefix("capstan "+command), "help begins with an example of the command")

		if slices.Contains(flags, "--operator-namespace") && slices.Contains(flags, "--config") {
			example = strings.Replace(example, command, command+" --config "+w.config, 1)
		}

		if command == "audit" {
			example += " || [ $? = 2 ]" // a CRD lacks the certificate authority, which cert-manager would inject
		}

		w.run(t, example)
	}
}

// example returns the example that the help of a command begins with.
func (u usage) example() string {
	_, rest, _ := strings.Cut(u.help, "\n\n")
	example, _, _ := strings.Cut(rest, "\n")

	return strings.TrimSpace(example)
}

// exampleFolder is where the examples run.
type exampleFolder struct {
	folder, config string
	environ        []string
}

// run runs a line of a shell.
func (w *exampleFolder) run(t *testing.T, line string) {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = w.folder, w.environ

	out, err := cmd.CombinedOutput()
	t.Logf("$ %s\n%s", line, out)
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), line)
}

// exampleResources are the providers that the examples name.
const exampleResources = `
apiVersion: v1
kind: Namespace
metadata: {name: capi-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: capa-system}
---
apiVersion: v1
kind: Secret
metadata: {name: aws-variables, namespace: capa-system}
stringData: {AWS_B64ENCODED_CREDENTIALS: none}
---
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: CoreProvider
metadata: {name: cluster-api, namespace: capi-system}
spec: {version: v1.13.5}
---
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: InfrastructureProvider
metadata: {name: aws, namespace: capa-system}
spec: {version: v2.10.3, secretName: aws-variables}
`

// newExampleFolder creates the files that the examples name.
func newExampleFolder(t *testing.T, b *bed.Bed) *exampleFolder {
	t.Helper()
	g := NewWithT(t)
	w := &exampleFolder{folder: t.TempDir()}
	w.config = filepath.Join(w.folder, "config", "cluster-api", "clusterctl.yaml")

	for _, version := range []string{"cluster-api/v1.13.5", "infrastructure-aws/v2.10.3", "infrastructure-aws/v2.11.1"} {
		writeSample(t, filepath.Join(w.folder, "providers", version))
	}

	account := strings.Replace("apiVersion: operator"+strings.Split(exampleResources, "apiVersion: operator")[2],
		"spec: {", "spec: {serviceAccountName: installer, ", 1)
	config := "providers:\n"

	for label, p := range map[string][3]string{
		"cluster-api":        {"cluster-api", "CoreProvider", "core"},
		"infrastructure-aws": {"aws", "InfrastructureProvider", "infrastructure"},
	} {
		config += fmt.Sprintf("- {name: %s, type: %s, url: 'file://%s/providers/%s/latest/%s-components.yaml'}\n",
			p[0], p[1], w.folder, label, p[2])
	}

	g.Expect(os.MkdirAll(filepath.Dir(w.config), 0o700)).To(Succeed())

	for path, content := range map[string]string{
		w.config: config, "resources.yaml": exampleResources, "aws.yaml": account,
	} {
		if !filepath.IsAbs(path) {
			path = filepath.Join(w.folder, path)
		}

		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}

	w.environ = append(os.Environ(), "KUBECONFIG="+b.Kubeconfig(), "HOME="+w.folder,
		"XDG_CONFIG_HOME="+filepath.Join(w.folder, "config"),
		"PATH="+filepath.Dir(program(t, "capstan"))+":"+filepath.Dir(b.Binary("kubectl"))+":"+os.Getenv("PATH"))

	return w
}

// writeSample writes a sample provider, <label>/<version>, as if it had that version, and had a cluster template.
func writeSample(t *testing.T, folder string) {
	t.Helper()
	g := NewWithT(t)
	label, version := filepath.Base(filepath.Dir(folder)), filepath.Base(folder)
	g.Expect(os.CopyFS(folder, os.DirFS(filepath.Join(root, "test/data/providers", label, "v1.0.0")))).To(Succeed())

	file := filepath.Join(folder, "metadata.yaml")
	metadata, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())

	number := strings.Split(strings.TrimPrefix(version, "v"), ".")
	text := strings.NewReplacer("major: 1", "major: "+number[0], "minor: 0", "minor: "+number[1]).Replace(string(metadata))
	template := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${CLUSTER_NAME}', namespace: '${NAMESPACE}'}\n"

	g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "cluster-template.yaml"), []byte(template), 0o600)).To(Succeed())
}
