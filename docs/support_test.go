package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// TestTriedVersions checks that support.md names the minor versions that the programs of the test bed are pinned to.
func TestTriedVersions(t *testing.T) {
	g := NewWithT(t)

	page, err := os.ReadFile("support.md")
	g.Expect(err).NotTo(HaveOccurred())

	tried := map[string]string{}

	rows := regexp.MustCompile(`(?m)^\| ([^|]+) \|[^|]+\| ([^|]+) \|$`)

	for _, row := range rows.FindAllStringSubmatch(string(page), -1) {
		tried[row[1]] = row[2]
	}

	for _, pin := range []struct{ row, folders, module string }{
		{"Kubernetes", "kubernetes*", "k8s.io/kubernetes"},
		{"Kubernetes", "node", "k8s.io/kubernetes"},
		{"Kubernetes", "containerd", "github.com/containerd/containerd/v2"},
		{"Helm", "helm3", "helm.sh/helm/v3"},
		{"Helm", "helm4", "helm.sh/helm/v4"},
		{"cert-manager", "cert-manager", "github.com/cert-manager/cert-manager"},
		{"Flux", "flux-helm", "github.com/fluxcd/helm-controller"},
		{"Flux", "flux-source", "github.com/fluxcd/source-controller"},
		{"clusterctl, next to Capstan", "clusterctl", "sigs.k8s.io/cluster-api"},
	} {
		files, err := filepath.Glob(filepath.Join(root, "test/bed/tools", pin.folders, "go.mod"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files).NotTo(BeEmpty(), pin.folders)

		for _, file := range files {
			version := strings.TrimPrefix(semver.MajorMinor(pinned(t, file, pin.module)), "v")
			g.Expect(tried[pin.row]).To(MatchRegexp(`(^|\D)`+regexp.QuoteMeta(version)+`(\D|$)`), "%s in %s", pin.module, file)
		}
	}
}

// pinned returns the version of a module that a go.mod requires.
func pinned(t *testing.T, file, module string) string {
	t.Helper()

	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	parsed, err := modfile.ParseLax(file, content, nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, require := range parsed.Require {
		if require.Mod.Path == module {
			return require.Mod.Version
		}
	}

	t.Fatalf("%s does not require %s", file, module)

	return ""
}
