package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/capstan-project/capstan/chartgen/supply/mirror"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Where cert-manager is published: the chart, and beside its folder the images.
const (
	certManagerChart  = "charts/cert-manager"
	certManagerPrefix = "cert-manager-"
	certManagerHome   = "oci://quay.io/jetstack/" + certManagerChart
)

// certManagerImages are the images of cert-manager's chart with its default values, and where these
// values have them.
var certManagerImages = []struct{ name, value string }{
	{"controller", "image.repository"},
	{"acmesolver", "acmesolver.image.repository"},
	{"cainjector", "cainjector.image.repository"},
	{"startupapicheck", "startupapicheck.image.repository"},
	{"webhook", "webhook.image.repository"},
}

// parseCertManager reads the flag: a version, or the chart of a version in somebody's registry.
func parseCertManager(s string) (oci.Reference, error) {
	if !isReference(s) {
		s = certManagerHome + ":" + s
	}

	ref, err := oci.Parse(s)
	if err == nil && (ref.Tag == "" || !strings.HasSuffix("/"+ref.Repository, "/"+certManagerChart)) {
		err = fmt.Errorf(
			"%s is not where cert-manager's chart can be; write it as oci://registry.example.com/path/%s:v1.21.2, whose images are oci://registry.example.com/path/%s…",
			s,
			certManagerChart,
			certManagerPrefix,
		)
	}

	if err != nil {
		return ref, fmt.Errorf("--cert-manager: %w", err)
	}

	return ref, nil
}

// certManagerImageNames are the images that belong to a chart.
func certManagerImageNames(chart oci.Reference) []string {
	base := strings.TrimSuffix(chart.Location(), certManagerChart)

	names := make([]string, 0, len(certManagerImages))
	for _, image := range certManagerImages {
		names = append(names, base+certManagerPrefix+image.name+":"+chart.Tag)
	}

	return names
}

// tellCertManager says how cert-manager is installed from the mirror, if that has it.
func tellCertManager(out io.Writer, target *mirror.Registry, items []*mirror.Item) {
	version, values := "", ""

	for _, item := range items {
		if item.IsChart() && !item.IsAttached() && strings.HasSuffix(item.Repository, certManagerChart) {
			version = oci.ChartVersion(item.Tag)
		}

		for _, image := range certManagerImages {
			if !item.IsAttached() && strings.HasSuffix(item.Repository, "/"+certManagerPrefix+image.name) {
				values += fmt.Sprintf(" \\\n    --set %s=%s", image.value, target.Base.Join(item.Repository).Location())
			}
		}
	}

	if version == "" {
		return
	}

	fmt.Fprintf(
		out,
		"Install cert-manager with:\n  helm install cert-manager %s/cert-manager --version %s -n cert-manager --create-namespace --set crds.enabled=true%s\n",
		target.ChartRepository(),
		version,
		values,
	)
}
