package compat

import (
	"context"
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
