package chartgen_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/test/testproviders"
)

// digestsOut is the environment variable with the file into which a copy of this test program writes the
// digests of charts, for TestReproducibleArchive.
const digestsOut = "CAPSTAN_TEST_DIGESTS_OUT"

// TestReproducibleArchive: the same files result in the same bytes, at any place and time, in any
// time zone, locale, and umask, and in any process, since maps have another order in each.
func TestReproducibleArchive(t *testing.T) {
	g := NewWithT(t)
	if out := os.Getenv(digestsOut); out != "" {
		g.Expect(os.WriteFile(out, []byte(digests(t, ".")), 0o600)).To(Succeed())
		return
	}

	for _, providers := range []string{"../" + testproviders.Samples, os.Getenv(testproviders.Variable)} {
		if providers == "" {
			continue
		}

		want := digests(t, providers)
		t.Logf("%d charts", strings.Count(want, "\n"))

		mask := syscall.Umask(0o077)
		folder := filepath.Join(t.TempDir(), "elsewhere")
		g.Expect(os.CopyFS(folder, os.DirFS(providers))).To(Succeed())
		syscall.Umask(mask)

		out := filepath.Join(t.TempDir(), "digests")
		cmd := exec.Command(os.Args[0], "-test.run", "^TestReproducibleArchive$")

		cmd.Dir = folder

		cmd.Env = append(os.Environ(), "TZ=Pacific/Kiritimati", "LC_ALL=tr_TR.UTF-8", "HOME=/nowhere", "GOMAXPROCS=1",
			digestsOut+"="+out)
		log, err := cmd.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(log))
		got, err := os.ReadFile(out)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(Equal(want))
	}
}

// digests returns the digests of the charts of all releases in a folder, one per line.
func digests(t *testing.T, providers string) string {
	t.Helper()
	g := NewWithT(t)

	folders, err := filepath.Glob(filepath.Join(providers, "*", "v*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(folders).NotTo(BeEmpty())

	var lines strings.Builder

	for _, folder := range folders {
		directory, err := source.NewDirectory(filepath.Dir(folder))
		g.Expect(err).NotTo(HaveOccurred())
		releases, err := directory.Versions(t.Context())
		g.Expect(err).NotTo(HaveOccurred())

		release, err := source.Pick(releases, filepath.Base(folder), "")
		g.Expect(err).NotTo(HaveOccurred())
		published, err := directory.Fetch(t.Context(), release)
		g.Expect(err).NotTo(HaveOccurred())

		built, err := chartgen.Build(published.Bundle)
		g.Expect(err).NotTo(HaveOccurred())
		packed, err := built.Archive()
		g.Expect(err).NotTo(HaveOccurred())

		fmt.Fprintln(&lines, built.Filename(), chart.Digest(packed))
	}

	return lines.String()
}

// TestValuesFile: values.yaml has a line for each variable, with its default, and changes nothing.
func TestValuesFile(t *testing.T) {
	g := NewWithT(t)
	built, err := chartgen.Build(provider("odd", `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {"${ODD_KEY:=key}": x}}
data:
  token: ${ODD_TOKEN}
  quoted: ${ODD_QUOTED:="it's"}
  mixed: ${ODD_NUMBER:=1} ${ODD_NUMBER:=010}
  broken: "${ODD_BROKEN:=x\u2028injected: yes\x85injected: yes}"
  special: ${ODD_SPECIAL:=grün}
  derived: ${ODD_DERIVED:=${ODD_TOKEN}-x}
`))
	g.Expect(err).NotTo(HaveOccurred())

	text := string(built.File(chart.ValuesFile))
	g.Expect(text).To(ContainSubstring(`variables: {}
  # ODD_BROKEN: 'x\u2028injected: yes\x85injected: yes'
  # ODD_DERIVED: "" # default ${ODD_TOKEN}-x
  # ODD_KEY: key
  # ODD_NUMBER: "1"
  # ODD_QUOTED: '"it''s"'
  # ODD_SPECIAL: "gr\u00fcn"
  # ODD_TOKEN: "" # required
`))

	g.Expect(string(built.File(chart.ReadmeFile))).To(
		ContainSubstring("| variables.ODD_DERIVED | Optional, default ${ODD_TOKEN}-x. |\n"))
	g.Expect(string(built.File(chart.SchemaFile))).To(And(
		ContainSubstring(`"Optional, default ${ODD_TOKEN}-x."`), Not(ContainSubstring(`"default": "${`))))

	var values map[string]any
	g.Expect(yaml.Unmarshal([]byte(text), &values)).To(Succeed())
	g.Expect(values).To(HaveLen(7))
	g.Expect(values).To(And(HaveKeyWithValue("variables", BeEmpty()), HaveKeyWithValue("paused", false)))
}

func file(name string) bundle.File { return bundle.File{Name: name, Data: []byte("kind: Cluster\n")} }

func TestReadme(t *testing.T) {
	g := NewWithT(t)
	b := odd(t)
	b.Templates = []bundle.File{
		file("cluster-template.yaml"), file("cluster-template-small.yaml"), file("clusterclass-quick.yaml"),
	}
	built, err := chartgen.Build(b)
	g.Expect(err).NotTo(HaveOccurred())

	readme := string(built.File(chart.ReadmeFile))
	for _, text := range []string{
		"Contract: v1beta2. Required API kinds: Certificate.v1.cert-manager.io, ClusterIssuer.v1.cert-manager.io.",
		"helm install infrastructure-odd infrastructure-odd-1.0.0.tgz --namespace odd-system --create-namespace",
		"| variables.ODD_EMPTY | Optional, default '\"\"'. |\n",
		"- odd-controller-manager: manager\n",
		"- registry.example.com/odd/manager:v1.0.0\n",
		"`url: /FOLDER/infrastructure-odd/v1.0.0/infrastructure-components.yaml`",
		"\nFlavors: the default, small.\n\nOther files: clusterclass-quick.yaml.\n",
	} {
		g.Expect(readme).To(ContainSubstring(text))
	}
}

// TestPublished: a chart has what else the provider publishes in a folder, which clusterctl can read.
func TestPublished(t *testing.T) {
	g := NewWithT(t)
	b := odd(t)
	b.Templates = []bundle.File{file("cluster-template.yaml"), file("clusterclass-quick.yaml")}
	built, err := chartgen.Build(b)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(built.File("v1.0.0/cluster-template.yaml")).To(Equal(b.Templates[0].Data))
	g.Expect(chartgen.Published(built)).To(ConsistOf(
		b.Templates[0], b.Templates[1], bundle.File{Name: bundle.MetadataFile, Data: b.Metadata}))
	g.Expect(chartgen.PublishedMetadata(built)).To(Equal(b.Metadata))
}

// TestNotes: NOTES.txt describes the next steps, and warns if conversion webhooks run elsewhere.
func TestNotes(t *testing.T) {
	g := NewWithT(t)
	for name, c := range map[string]struct {
		b       *bundle.Bundle
		warning OmegaMatcher
	}{
		"conversion webhooks in another namespace": {
			odd(t),
			And(
				ContainSubstring("call the conversion webhook in the namespace odd-system, not in "+targetNamespace),
				ContainSubstring("capstan chart build --crds separate --namespace "+targetNamespace+" writes"),
			),
		},
		"no conversion webhooks": {provider("odd", crdWith("a")), Not(ContainSubstring("WARNING"))},
	} {
		built, err := chartgen.Build(c.b)
		g.Expect(err).NotTo(HaveOccurred())
		rendered, err := renderChart(built, nil)
		g.Expect(err).NotTo(HaveOccurred())

		notes := rendered["infrastructure-odd/"+chart.TemplatesDir+"NOTES.txt"]
		g.Expect(notes).To(
			HavePrefix("infrastructure-odd v1.0.0 has been deployed to the namespace "+targetNamespace), name)
		g.Expect(notes).To(ContainSubstring("clusterctl generate cluster NAME --infrastructure odd:v1.0.0"), name)
		g.Expect(notes).To(c.warning, name)
	}
}
