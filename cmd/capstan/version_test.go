package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/cmd/capstan/internal/operatorconfig"
)

func versionCommand(o *cli.Options) *cobra.Command { return newVersionCommand(o, "v1.2.3") }

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

func TestVersionOfOperator(t *testing.T) {
	const repository = "localhost:5000/capstan/capstan"

	for name, c := range map[string]struct {
		image string
		want  component
	}{
		"the chart's image": {repository + ":v1.1.0", component{"v1.1.0", "6"}},
		"a digest":          {repository + "@sha256:abc", component{"v1.1.0", "6"}},
		"a tag and digest":  {repository + ":v1.0.0@sha256:abc", component{"v1.1.0", "6"}},
		"another image":     {repository + ":v1.0.9", component{"v1.0.9", ""}},
		"no tag":            {repository, component{"v1.1.0", "6"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "capstan-system", Name: "capstan",
				Labels:      map[string]string{operatorconfig.VersionLabel: "v1.1.0"},
				Annotations: map[string]string{v1alpha2.ChartFormatAnnotation: "6"},
			}}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy"}, {Name: "operator", Image: c.image}}
			NewWithT(t).Expect(newOperator(d)).To(HaveValue(Equal(operator{c.want, "capstan-system", "capstan", c.image})))
		})
	}

	NewWithT(t).Expect(newOperator(&appsv1.Deployment{}).component).To(Equal(component{}))
}

func TestCompareVersions(t *testing.T) {
	own := component{"v1.2.3", "7"}

	for _, c := range []struct {
		own, operator component
		want          []string
	}{
		{own, own, nil},
		{own, component{"v1.2.9", "7"}, nil},
		{own, component{"v1.2.9", ""}, nil},
		{own, component{"dev", "7"}, nil},
		{component{"dev", "7"}, own, nil},
		{own, component{"v1.1.9", "7"}, []string{"use a program of version v1.1.x, or upgrade the operator"}},
		{own, component{"v2.2.3", "7"}, []string{"the operator has version v2.2.3 and this program v1.2.3"}},
		{own, component{"v1.2.3", "6"}, []string{"the operator builds charts in format 6 and this program in format 7"}},
		{own, component{"v1.1.0", "6"}, []string{"v1.1.0", "format 6"}},
	} {
		g := NewWithT(t)
		v := versions{Client: c.own, Operator: &operator{component: c.operator}}
		v.compare()
		g.Expect(v.Warnings).To(HaveLen(len(c.want)), "%+v", c)

		for i, want := range c.want {
			g.Expect(v.Warnings[i]).To(ContainSubstring(want))
		}
	}
}

func TestVersionTable(t *testing.T) {
	v := versions{
		Client:   component{"v1.2.3", "7"},
		Operator: &operator{component{"v1.1.0", ""}, "capstan-system", "capstan", ""},
	}
	out := clitest.Printed(t, cli.Printer{}, func(p *cli.Printer) error { return p.Table(v.table()) })
	NewWithT(t).Expect(out).To(Equal(
		"PROGRAM    VERSION   CHART FORMAT   DEPLOYMENT\n" +
			"capstan    v1.2.3    7\n" +
			"operator   v1.1.0    unknown        capstan-system/capstan\n"))
}
