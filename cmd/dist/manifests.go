package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/charts"
)

const chartFolder = "charts/capstan"

var (
	chartVersion = regexp.MustCompile(`(?m)^version: .*$`)
	appVersion   = regexp.MustCompile(`(?m)^appVersion: .*$`)
	sourceLine   = regexp.MustCompile(`(?m)^# (Source|Generated).*\n`)
)

// manifests makes the chart, and everything for kubectl in one file.
func (m *maker) manifests(context.Context) error {
	packed, err := m.chart()
	if err != nil {
		return err
	}

	data, err := packed.Archive()
	if err != nil {
		return err
	}

	if err := m.write(packed.Filename(), data); err != nil {
		return err
	}

	installable, err := charts.Load(chartFolder)
	if err != nil {
		return err
	}

	installable.Metadata.Version, installable.Metadata.AppVersion = packed.Metadata.Version, packed.Metadata.AppVersion

	operator, err := charts.Render(installable, nil, func(string) bool { return true })
	if err != nil {
		return err
	}

	namespace, err := os.ReadFile("config/default/namespace.yaml")
	if err != nil {
		return err
	}

	var out bytes.Buffer
	fmt.Fprintf(&out, "# Capstan %s: kubectl apply --server-side -f capstan.yaml\n---\n%s", m.version, namespace)

	for _, definition := range packed.CRDs {
		out.Write(bytes.TrimSpace(append([]byte("---\n"), bytes.TrimPrefix(definition.Data, []byte("---\n"))...)))
		out.WriteByte('\n')
	}

	out.Write(sourceLine.ReplaceAll(operator, nil))

	return m.write("capstan.yaml", out.Bytes())
}

// chart is charts/capstan with the release's version.
func (m *maker) chart() (*chart.Chart, error) {
	c := &chart.Chart{}

	err := filepath.WalkDir(chartFolder, func(file string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), ".") ||
			strings.HasSuffix(entry.Name(), ".gotmpl") {
			return err
		}

		name, err := filepath.Rel(chartFolder, file)
		if err != nil {
			return err
		}

		data, err := os.ReadFile(file)
		if name == chart.MetadataFile {
			data = chartVersion.ReplaceAll(data, []byte("version: "+strings.TrimPrefix(m.version, "v")))

			data = appVersion.ReplaceAll(data, []byte("appVersion: "+m.version))
			if err := yaml.Unmarshal(data, &c.Metadata); err != nil {
				return err
			}
		}

		c.Files = append(c.Files, chart.File{Name: filepath.ToSlash(name), Data: data})

		return err
	})
	if err != nil {
		return nil, err
	}
	// The folder of CRDs is a symbolic link, which is not walked through.
	definitions, err := filepath.Glob(filepath.Join(chartFolder, "crds/*.yaml"))
	if err != nil {
		return nil, err
	}

	for _, file := range definitions {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}

		c.CRDs = append(c.CRDs, chart.File{Name: "crds/" + filepath.Base(file), Data: data})
	}

	return c, nil
}
