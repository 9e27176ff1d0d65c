package chartgen_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/test/bed/tools"
)

// TestHelmPrograms: helm accepts the charts of all releases, without a warning.
func TestHelmPrograms(t *testing.T) {
	set, err := tools.Find()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	forEachRelease(t, func(t *testing.T, b *bundle.Bundle) {
		built, err := chartgen.Build(b)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		acceptChart(t, set.Program(tools.Helm()), built)
	})
}

// TestHelmProgramRefusesInjections: without the operator, too, no value turns an object into another one.
func TestHelmProgramRefusesInjections(t *testing.T) {
	g := NewWithT(t)
	set, err := tools.Find()
	g.Expect(err).NotTo(HaveOccurred())

	built, err := chartgen.Build(provider("odd", configMap+"data:\n  a: ${V}\n"))
	g.Expect(err).NotTo(HaveOccurred())
	packed, err := built.Archive()
	g.Expect(err).NotTo(HaveOccurred())

	home := t.TempDir()
	file := filepath.Join(home, built.Filename())
	g.Expect(os.WriteFile(file, packed, 0o600)).To(Succeed())

	for value, accepted := range map[string]bool{"plain": true, "b\nkind: Secret\nmetadata: {name: intruder}": false} {
		cmd := exec.CommandContext(
			t.Context(), set.Program(tools.Helm3), "template", file, "--set-string", "variables.V="+value)
		cmd.Env = []string{"HOME=" + home}

		out, err := cmd.CombinedOutput()
		g.Expect(err == nil).To(Equal(accepted), "%s", out)
		g.Expect(strings.Contains(string(out), "ConfigMap default/a: the value of variable V changes more than the field")).
			To(Equal(!accepted), "%s", out)
		g.Expect(string(out)).NotTo(ContainSubstring("intruder"))
	}
}

// acceptChart checks that helm lints and renders a chart without a warning.
func acceptChart(t *testing.T, helm string, built *chart.Chart) {
	t.Helper()
	g := NewWithT(t)

	home := t.TempDir()
	file := filepath.Join(home, built.Filename())
	packed, err := built.Archive()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(file, packed, 0o600)).To(Succeed())

	required, _, err := chartgen.RequiredVariables(built)
	g.Expect(err).NotTo(HaveOccurred())

	var values []string
	for _, name := range required {
		values = append(values, "--set", "variables."+name+"=dGV4dA==")
	}

	run := func(args ...string) string {
		out, err := runHelm(t.Context(), helm, home, append(args, values...)...)
		g.Expect(err).NotTo(HaveOccurred())

		return out
	}

	g.Expect(run("lint", "--strict", file)).To(And(
		ContainSubstring("1 chart(s) linted, 0 chart(s) failed"), Not(MatchRegexp(`\[(WARNING|ERROR)\]`))))

	manifest := run("template", "release", file, "--include-crds", "--namespace", targetNamespace)
	g.Expect(strings.Count(manifest, "\nkind: ")).To(BeNumerically(">=", len(built.CRDs)))
}

// runHelm returns what a helm program prints, and an error if it warns.
func runHelm(ctx context.Context, helm, home string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer

	cmd := exec.CommandContext(ctx, helm, args...)
	cmd.Env = []string{"HOME=" + home}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr

	err := cmd.Run()
	if err == nil && stderr.Len() > 0 {
		err = errors.New("it warns")
	}

	if err != nil {
		return "", fmt.Errorf("%s %q: %w: %s%s", helm, args, err, &stdout, &stderr)
	}

	return stdout.String(), nil
}
