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
	"github.com/capstan-project/capstan/chartgen/supply/source"
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

		for i, machine := range [][]string{
			{"TZ=Pacific/Kiritimati", "LC_ALL=tr_TR.UTF-8", "LANG=tr_TR.UTF-8", "GOMAXPROCS=1"},
			{"TZ=America/Adak", "LC_ALL=C", "HOME=/nowhere"},
		} {
			mask := syscall.Umask([]int{0o077, 0}[i])
			folder := filepath.Join(t.TempDir(), fmt.Sprint(i))
			g.Expect(os.CopyFS(folder, os.DirFS(providers))).To(Succeed())
			syscall.Umask(mask)

			out := filepath.Join(t.TempDir(), "digests")
			cmd := exec.Command(os.Args[0], "-test.run", "^TestReproducibleArchive$")

			cmd.Dir = folder

			cmd.Env = append(os.Environ(), append(machine, digestsOut+"="+out)...)
			log, err := cmd.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(log))
			got, err := os.ReadFile(out)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(got)).To(Equal(want), strings.Join(machine, " "))
		}
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
		b, err := directory.Fetch(t.Context(), release)
		g.Expect(err).NotTo(HaveOccurred())

		built, err := chartgen.Build(b)
		g.Expect(err).NotTo(HaveOccurred())
		packed, err := built.Archive()
		g.Expect(err).NotTo(HaveOccurred())

		fmt.Fprintln(&lines, built.Filename(), chart.Digest(packed))
	}

	return lines.String()
}

// TestValuesFile: values.yaml lists each variable with its uses and its default, and each
// Deployment as published. All comments are valid YAML when uncommented.
func TestValuesFile(t *testing.T) {
	g := NewWithT(t)
	built, err := chartgen.Build(provider("odd", workloads+`---
apiVersion: v1
kind: Secret
metadata: {name: credentials, annotations: {"${ODD_KEY:=key}": x}}
stringData:
  token: ${ODD_TOKEN}
  quoted: ${ODD_QUOTED:="it's"}
  mixed: ${ODD_NUMBER:=1} ${ODD_NUMBER:=010} ${ODD_TOKEN/a/b}
  changed: ${ODD_CHANGED^^}
`))
	g.Expect(err).NotTo(HaveOccurred())

	text := string(built.File(chart.ValuesFile))
	for _, lines := range []string{
		"  # Deployment manager: container manager, flag --feature-gates\n  # ODD_B: true\n",
		"  # Secret credentials: stringData.token\n  # ODD_TOKEN: \"\" # required\n",
		"  # Secret credentials: stringData.quoted\n  # ODD_QUOTED: \"\\\"it's\\\"\"\n",
		"  # Secret credentials: stringData.mixed\n  # default 1 or '010'\n  # ODD_NUMBER: 1\n",
		"  # Secret credentials: metadata.annotations\n  # ODD_KEY: key\n",
		"  # Secret credentials: line 58\n  # ODD_CHANGED: \"\" # required\n",
		"  #       featureGates:\n  #         B: true\n  #         A: false\n",
	} {
		g.Expect(text).To(ContainSubstring(lines))
	}

	var values map[string]any
	g.Expect(yaml.Unmarshal([]byte(text), &values)).To(Succeed())
	g.Expect(values).To(HaveKeyWithValue("deployments", BeEmpty()))

	_, comments, _ := strings.Cut(text, "\ndeployments: {}\n")

	var published map[string]any
	g.Expect(yaml.Unmarshal([]byte(strings.ReplaceAll(comments, "  # ", "")), &published)).To(Succeed())
	g.Expect(field(published, "manager.replicas")).To(BeEquivalentTo(2))
	g.Expect(field(published, "manager.serviceAccountName")).To(Equal("manager"))
	g.Expect(field(published, "manager.containers.manager.args.v")).To(BeEquivalentTo(3), "the last of two flags counts")
	g.Expect(field(published, "manager.containers.manager.args.sync")).To(Equal("10m"))
	g.Expect(field(published, "manager.containers.manager.image")).To(Equal("registry.k8s.io/cluster-api/manager:v1.0.0"))
	g.Expect(published).To(HaveKey("other"))
}

func file(name string) bundle.File { return bundle.File{Name: name, Data: []byte("kind: Cluster\n")} }

func TestReadme(t *testing.T) {
	g := NewWithT(t)
	b := odd(t)
	b.Templates = []bundle.File{
		{Name: "cluster-template.yaml", Data: []byte("kind: Cluster\nmetadata:\n  name: ${CLUSTER_NAME}\n---\n" +
			"apiVersion: odd.example.com/v1\nkind: OddCluster\nmetadata: {name: '${CLUSTER_NAME}-odd'}\n" +
			"spec: {region: '${ODD_REGION:=north}'}\n")},
		{Name: "cluster-template-broken.yaml", Data: []byte("name: ${CLUSTER_NAME\n")},
		file("cluster-template-small.yaml"),
		file("cluster-templates.yaml"),
		{Name: "clusterclass-quick.yaml", Data: []byte("{a: '${ODD_CLASS:=quick}', b: '${ODD_CLASS:=other}'}\n")},
	}
	built, err := chartgen.Build(b)
	g.Expect(err).NotTo(HaveOccurred())

	readme := string(built.File(chart.ReadmeFile))
	for _, text := range []string{
		"| Contract | `v1beta2` |",
		"helm install infrastructure-odd infrastructure-odd-1.0.0.tgz --namespace odd-system --create-namespace",
		"1 of the CRDs call a conversion webhook in the namespace `odd-system`",
		"| `ODD_EMPTY` | `'\"\"'` | ConfigMap odd-config: data.template |",
		"| oddities.odd.example.com | Oddity | Cluster | v1 (stored) |",
		"- `registry.example.com/odd/manager:v1.0.0`",
		"\n`clusterctl generate cluster NAME --infrastructure odd:v1.0.0 --flavor FLAVOR`",
		"- name: odd\n  type: InfrastructureProvider\n" +
			"  url: /FOLDER/infrastructure-odd/v1.0.0/infrastructure-components.yaml",
		"### `cluster-template.yaml`\n\nThe template without a flavor.\n\n" +
			"| Variable | Default | Used in |\n|---|---|---|\n" +
			"| `CLUSTER_NAME` | required | Cluster, OddCluster |\n" +
			"| `ODD_REGION` | `north` | OddCluster |\n",
		"### `cluster-template-small.yaml`\n\nFlavor `small`.\n\nNo variables.\n",
		"### `cluster-template-broken.yaml`\n\nFlavor `broken`.\n\nIts variables are unknown: ",
		"### `cluster-templates.yaml`\n\nNot selected by any flavor.\n",
		"### `clusterclass-quick.yaml`\n\nClass `quick`.\n\n" +
			"| Variable | Default | Used in |\n|---|---|---|\n| `ODD_CLASS` | `quick` or `other` | line 1 |\n",
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
			ContainSubstring("call the conversion webhook in the namespace odd-system, not in " + targetNamespace),
		},
		"no conversion webhooks": {provider("odd", crdWith("a")), Not(ContainSubstring("WARNING"))},
	} {
		built, err := chartgen.Build(c.b)
		g.Expect(err).NotTo(HaveOccurred())
		rendered, err := renderChart(built, nil)
		g.Expect(err).NotTo(HaveOccurred())

		notes := rendered["infrastructure-odd/"+chart.NotesFile]
		g.Expect(notes).To(
			HavePrefix("infrastructure-odd v1.0.0 has been deployed to the namespace "+targetNamespace), name)
		g.Expect(notes).To(ContainSubstring("clusterctl generate cluster NAME --infrastructure odd:v1.0.0"), name)
		g.Expect(notes).To(c.warning, name)
	}
}
