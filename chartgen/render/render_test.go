package render_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/test/testproviders"
)

// TestReleaseSize compares with the Secret that Helm writes. The difference is below one percent.
func TestReleaseSize(t *testing.T) {
	folders := []string{"../../test/data/providers/infrastructure-docker"}

	for _, provider := range []string{"infrastructure-aws", "infrastructure-k0smotron"} {
		more, err := testproviders.Glob(t, provider)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		folders = append(folders, more...)
	}

	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			g := NewWithT(t)
			built := build(t, folder)
			size, err := render.ReleaseSize(built)
			g.Expect(err).NotTo(HaveOccurred())

			stored := helmStores(t, built)
			g.Expect(size).To(BeNumerically("~", stored, stored/100+600), "notes, times and values are not counted")

			archive, err := built.Archive()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(size).To(BeNumerically("<", 4*len(archive)), "Oversize expects at most five times the archive")

			without, err := render.ReleaseSize(&chart.Chart{Metadata: built.Metadata, Files: built.Files})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(without).To(BeNumerically("<", size))
		})
	}
}

// helmStores installs the chart with Helm into a fake cluster and returns the size of the release.
func helmStores(t *testing.T, c *chart.Chart) int {
	t.Helper()
	g := NewWithT(t)
	archive, err := c.Archive()
	g.Expect(err).NotTo(HaveOccurred())
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	g.Expect(err).NotTo(HaveOccurred())

	secrets := fake.NewClientset().CoreV1().Secrets("default")
	config := &action.Configuration{
		Releases:     storage.Init(driver.NewSecrets(secrets)),
		KubeClient:   &kubefake.PrintingKubeClient{Out: io.Discard},
		Capabilities: chartutil.DefaultCapabilities,
		Log:          t.Logf,
	}
	install := action.NewInstall(config)
	install.ReleaseName = c.Metadata.Name
	install.Namespace = "default"
	install.SkipCRDs = true
	_, err = install.Run(loaded, map[string]any{"variables": required(t, c)})
	g.Expect(err).NotTo(HaveOccurred())
	list, err := secrets.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(HaveLen(1))

	return len(list.Items[0].Data["release"])
}

func required(t *testing.T, c *chart.Chart) map[string]any {
	names, _, err := chartgen.RequiredVariables(c)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	variables := map[string]any{}
	for _, name := range names {
		variables[name] = "value"
	}

	return variables
}

func build(t *testing.T, folder string) *chart.Chart {
	t.Helper()
	g := NewWithT(t)
	directory, err := source.NewDirectory(folder)
	g.Expect(err).NotTo(HaveOccurred())
	releases, err := directory.Versions(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	published, err := directory.Fetch(t.Context(), releases[0])
	g.Expect(err).NotTo(HaveOccurred())
	c, err := chartgen.Build(published.Bundle)
	g.Expect(err).NotTo(HaveOccurred())

	return c
}

func TestImages(t *testing.T) {
	g := NewWithT(t)
	c := build(t, "../../test/data/providers/infrastructure-aws")
	images, err := render.Images(c)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(images).To(Equal([]string{"registry.example.com/capi/cluster-api-aws-controller:v1.0.0"}))
}

func TestManifest(t *testing.T) {
	g := NewWithT(t)
	c := build(t, "../../test/data/providers/infrastructure-aws")
	manifest, err := render.Manifest(c, "default", map[string]any{"imageRegistry": "mirror"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest).To(ContainSubstring("image: mirror/capi/cluster-api-aws-controller:v1.0.0\n"))

	_, err = render.Manifest(c, "default", map[string]any{"imageRegistr": "mirror"})
	g.Expect(err).To(MatchError(ContainSubstring("chart infrastructure-aws: values don't meet the specifications")))
}

// TestOversize: a chart is rendered only if its archive is so large that Helm may be unable to store the
// release.
func TestOversize(t *testing.T) {
	g := NewWithT(t)
	c := build(t, "../../test/data/providers/infrastructure-aws")

	g.Expect(render.Oversize(c, render.MaxReleaseSize/2)).To(BeZero(), "it is small, whatever the size of the archive")

	noise := make([]byte, render.MaxReleaseSize)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	c.Files = append(c.Files, chart.File{Name: "noise", Data: noise})

	sizes, err := render.Oversize(c, render.MaxReleaseSize/2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sizes.Helm).To(BeNumerically(">", render.MaxReleaseSize))
	g.Expect(sizes.Operator).To(BeZero(), "its releases have no files")
	g.Expect(render.ReleaseSize(c)).To(Equal(sizes.Helm))

	folder := t.TempDir()
	g.Expect(os.CopyFS(folder, os.DirFS("../../test/data/providers/infrastructure-aws"))).To(Succeed())

	components, err := os.OpenFile(
		filepath.Join(folder, "v1.0.0", "infrastructure-components.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = fmt.Fprintf(components,
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: noise}\nbinaryData: {a: %s}\n",
		base64.StdEncoding.EncodeToString(noise))
	g.Expect(errors.Join(err, components.Close())).To(Succeed())

	sizes, err = render.Oversize(build(t, folder), render.MaxReleaseSize/2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sizes.Operator).To(And(BeNumerically(">", render.MaxReleaseSize), BeNumerically("<", sizes.Helm)))

	// The operator leaves more room in a Secret than the helm command does.
	nearly := build(t, folder)
	for i, f := range nearly.Files {
		if strings.Contains(f.Name, "configmap-noise") {
			nearly.Files[i].Data = []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: noise}\nbinaryData: {a: " +
				base64.StdEncoding.EncodeToString(noise[:720<<10]) + "}\n")
		}
	}

	sizes, err = render.Oversize(nearly, render.MaxReleaseSize/2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sizes.Operator).To(And(BeNumerically(">", helm.MaxRecord), BeNumerically("<", render.MaxReleaseSize)))

	c.Files = append(c.Files, chart.File{Name: chart.TemplatesDir + "broken.yaml", Data: []byte("{{ fail }}")})

	g.Expect(render.Oversize(c, render.MaxReleaseSize/5)).To(BeZero())
	_, err = render.Oversize(c, render.MaxReleaseSize/4)
	g.Expect(err).To(MatchError(ContainSubstring("broken.yaml")))
}
