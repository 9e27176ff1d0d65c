// Package clitest helps to test the commands of capstan.
package clitest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// Command returns a command.
type Command func(*cli.Options) *cobra.Command

// Run runs a command without standard input.
func Run(ctx context.Context, command Command, args ...string) (stdout, stderr string, err error) {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()

	cmd := command(&cli.Options{IOStreams: streams})
	cmd.SilenceUsage = true
	cmd.SilenceErrors = true

	cmd.SetArgs(args)

	err = cmd.ExecuteContext(ctx)

	return out.String(), errOut.String(), err
}

// WithoutConfiguration hides the configuration files and kubeconfig of the user who runs the test.
func WithoutConfiguration(t *testing.T) {
	t.Helper()

	for _, name := range []string{"HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, t.TempDir())
	}

	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
}

// Printed returns the output of a function that uses a printer.
func Printed(t *testing.T, printer cli.Printer, write func(*cli.Printer) error) string {
	t.Helper()

	var out bytes.Buffer

	printer.Writer = &out
	gomega.NewWithT(t).Expect(write(&printer)).To(gomega.Succeed())

	return out.String()
}

// Golden compares text with a file in testdata. If UPDATE_GOLDEN is set, it writes the file instead.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	g := gomega.NewWithT(t)
	file := filepath.Join("testdata", name)

	if os.Getenv("UPDATE_GOLDEN") != "" {
		g.Expect(os.MkdirAll("testdata", 0o755)).To(gomega.Succeed())
		g.Expect(os.WriteFile(file, []byte(got), 0o600)).To(gomega.Succeed())
	}

	want, err := os.ReadFile(file)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(got).To(gomega.Equal(string(want)))

	for line := range strings.Lines(got) {
		g.Expect(line).NotTo(gomega.MatchRegexp(`[ \t]\n$`), "trailing space")
	}
}

// NoParts fails if the output of a command contains four or more characters of a value.
func NoParts(t *testing.T, output string, values ...string) {
	t.Helper()

	const length = 4

	for _, value := range values {
		for i := range len(value) - length + 1 {
			if part := value[i : i+length]; strings.Contains(output, part) {
				t.Errorf("%q, a part of a value, is in the output:\n%s", part, output)
			}
		}
	}
}
