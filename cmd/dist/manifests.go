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

	// sourceLine matches the comments that tell where generated manifests come from.
	sourceLine = regexp.MustCompile(`(?m)^# (Source|Generated).*\n`)
)

// manifests writes the packaged chart, and one file with all objects for kubectl.
func (b *builder) manifests(context.Context) error {
	packed, err := b.chart()
	if err != nil {
		return err
	}

	data, err := packed.Archive()
	if err != nil {
		return err
	}

	if err := b.write(packed.Filename(), data); err != nil {
		return err
	}

	installable, err := charts.Load(chartFolder)
	if err != nil {
		return err
	}

	installable.Metadata.Version = packed.Metadata.Version
	installable.Metadata.AppVersion = packed.Metadata.AppVersion

	operator, err := charts.Render(installable, nil, func(string) bool { return true })
	if err != nil {
		return err
	}

	namespace, err := os.ReadFile("config/default/namespace.yaml")
	if err != nil {
		return err
	}

	var out bytes.Buffer
	fmt.Fprintf(&out, "# Capstan %s: kubectl apply --server-side -f capstan.yaml\n---\n%s", b.version, namespace)

	for _, definition := range packed.CRDs {
		document := bytes.TrimSpace(bytes.TrimPrefix(definition.Data, []byte("---\n")))
		fmt.Fprintf(&out, "---\n%s\n", document)
	}

	out.Write(sourceLine.ReplaceAll(operator, nil))

	return b.write("capstan.yaml", out.Bytes())
}

// chart returns charts/capstan with the version of the release.
func (b *builder) chart() (*chart.Chart, error) {
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
		if err != nil {
			return err
		}

		if name == chart.MetadataFile {
			data = chartVersion.ReplaceAll(data, []byte("version: "+strings.TrimPrefix(b.version, "v")))
			data = appVersion.ReplaceAll(data, []byte("appVersion: "+b.version))

			if err := yaml.Unmarshal(data, &c.Metadata); err != nil {
				return err
			}
		}

		c.Files = append(c.Files, chart.File{Name: filepath.ToSlash(name), Data: data})

		return nil
	})
	if err != nil {
		return nil, err
	}

	// WalkDir does not follow crds, which is a symbolic link.
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
