// Package certmanager knows where cert-manager is published, so that it can be mirrored and installed
// together with the providers that need it.
package certmanager

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen/mirror"
	"github.com/capstan-project/capstan/chartgen/oci"
)

// The chart is in the folder charts of a registry's path, the images are next to that folder.
const (
	// Version is the version of cert-manager that `capstan init` installs unless another is named.
	Version = "v1.21.2"
	// ChartName is the name of the chart, in a mirror too.
	ChartName = "cert-manager"

	chartPath   = "charts/" + ChartName
	imagePrefix = "cert-manager-"

	publicFolder = "jetstack/"
	publicChart  = "oci://quay.io/" + publicFolder + chartPath
)

// images are the images that the chart uses with its default values, and the values that contain
// their repositories.
var images = []struct{ name, value string }{
	{"controller", "image.repository"},
	{"acmesolver", "acmesolver.image.repository"},
	{"cainjector", "cainjector.image.repository"},
	{"startupapicheck", "startupapicheck.image.repository"},
	{"webhook", "webhook.image.repository"},
}

// ParseChart returns the chart that a string names: a version of the public chart, or a reference to
// the chart in another registry.
func ParseChart(s string) (oci.Reference, error) {
	if !strings.Contains(s, "://") {
		s = publicChart + ":" + s
	}

	chart, err := oci.Parse(s)
	if err != nil {
		return chart, err
	}

	if chart.Tag == "" || !strings.HasSuffix("/"+chart.Repository, "/"+chartPath) {
		return chart, fmt.Errorf(
			"%s cannot be cert-manager's chart; expected oci://registry.example.com/path/%s:%s, "+
				"with the images oci://registry.example.com/path/%s…",
			s,
			chartPath,
			Version,
			imagePrefix,
		)
	}

	return chart, nil
}

// Images returns the names of the images that belong to a chart.
func Images(chart oci.Reference) []string {
	base := strings.TrimSuffix(chart.Location(), chartPath)

	names := make([]string, 0, len(images))
	for _, image := range images {
		names = append(names, base+imagePrefix+image.name+":"+chart.Tag)
	}

	return names
}

// ImageValues returns the values with which the chart takes its images from a mirror: a registry, as
// host[:port][/path], with the images in the repositories that they have in the public registry.
func ImageValues(registry string) map[string]any {
	values := map[string]any{}

	for _, image := range images {
		fields := strings.Split(image.value, ".")

		// Only constants can be wrong here.
		_ = unstructured.SetNestedField(values, registry+"/"+publicFolder+imagePrefix+image.name, fields...)
	}

	return values
}

// InstallCommand returns the command that installs cert-manager from a mirror that contains the
// items. It is empty if the chart is not among them.
func InstallCommand(target *mirror.Registry, items []*mirror.Item) string {
	var (
		version string
		values  strings.Builder
	)

	for _, item := range items {
		if item.IsSignature() {
			continue
		}

		if item.IsChart() && strings.HasSuffix(item.Repository, chartPath) {
			version = oci.ChartVersion(item.Tag)
		}

		for _, image := range images {
			if strings.HasSuffix(item.Repository, "/"+imagePrefix+image.name) {
				fmt.Fprintf(&values, " \\\n    --set %s=%s", image.value, target.Base.Join(item.Repository).Location())
			}
		}
	}

	if version == "" {
		return ""
	}

	return fmt.Sprintf(
		"helm install cert-manager %s/cert-manager --version %s -n cert-manager --create-namespace --set crds.enabled=true%s",
		target.ChartRepository(),
		version,
		values.String(),
	)
}
