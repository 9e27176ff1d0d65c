package compat

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/harness"
)

// capstan runs the command line of this module, and returns its output without warnings.
func (w *world) capstan(ctx context.Context, args ...string) string {
	GinkgoHelper()

	program, err := harness.Program(ctx, root, GinkgoT().TempDir(), harness.CapstanProgram)
	Expect(err).NotTo(HaveOccurred())

	cmd := w.Command(ctx, "kubectl", args...)
	cmd.Path, cmd.Args[0] = program, program
	cmd.Stderr = GinkgoWriter
	output, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "capstan %s", strings.Join(args, " "))

	return string(output)
}

// spaces are those of columns, and deprecation is a warning of the API server.
var (
	spaces      = regexp.MustCompile(` +`)
	deprecation = regexp.MustCompile(`(?m)^.* is deprecated in .*\n`)
)

// expectDocumented expects that the documentation shows the output of a command, after a line with the command. The
// width of columns may differ.
func expectDocumented(command, output string) {
	GinkgoHelper()

	page, err := os.ReadFile(filepath.Join(root, "docs/clusterctl.md"))
	Expect(err).NotTo(HaveOccurred())

	normalized := func(text string) string {
		return spaces.ReplaceAllString(deprecation.ReplaceAllString(text, ""), " ")
	}

	_, rest, found := strings.Cut(string(page), "\n"+command+"\n")
	Expect(found).To(BeTrue(), command)

	documented, _, found := strings.Cut(rest, "```")
	Expect(found).To(BeTrue(), command)
	Expect(strings.TrimSpace(normalized(documented))).To(Equal(strings.TrimSpace(normalized(output))))
}
