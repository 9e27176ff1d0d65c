package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

func versionCommand(o *cli.Options) *cobra.Command {
	o.Version = "v1.2.3"

	return newVersionCommand(o)
}

func TestVersionWithoutCluster(t *testing.T) {
	g := NewWithT(t)
	clitest.WithoutConfiguration(t)

	out, warnings, err := clitest.Run(t.Context(), versionCommand)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())
	g.Expect(out).To(Equal("PROGRAM   VERSION   CHART FORMAT   DEPLOYMENT\ncapstan   v1.2.3    " +
		chartgen.Version + "\n"))

	out, warnings, err = clitest.Run(t.Context(), versionCommand, "-o", "json")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())
	g.Expect(out).To(MatchJSON(`{"client": {"version": "v1.2.3", "chartFormat": "` + chartgen.Version + `"}}`))
}

func TestVersionOfUnreachableCluster(t *testing.T) {
	g := NewWithT(t)
	clitest.WithoutConfiguration(t)

	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]}`
	g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())

	out, warnings, err := clitest.Run(t.Context(), versionCommand, "--kubeconfig", file, "-o", "yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(And(
		HavePrefix("Warning: the operator's version is unknown: "), ContainSubstring("connection refused")))
	g.Expect(out).To(HavePrefix("client:\n"))

	_, warnings, err = clitest.Run(t.Context(), versionCommand, "--kubeconfig", file, "--client")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())
}

func TestVersionTable(t *testing.T) {
	v := versions{
		Client:   cli.ProgramVersion{Version: "v1.2.3", ChartFormat: "7"},
		Operator: &operator{cli.ProgramVersion{Version: "v1.1.0"}, "capstan-system", "capstan", ""},
	}
	out := clitest.Printed(t, cli.Printer{}, func(p *cli.Printer) error { return p.Table(v.table()) })
	NewWithT(t).Expect(out).To(Equal(
		"PROGRAM    VERSION   CHART FORMAT   DEPLOYMENT\n" +
			"capstan    v1.2.3    7\n" +
			"operator   v1.1.0    unknown        capstan-system/capstan\n"))
}
