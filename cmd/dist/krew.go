package main

import (
	"context"

	"sigs.k8s.io/yaml"
)

// downloads is where a release's files are; the version goes after it.
const downloads = "https://github.com/capstan-project/capstan/releases/download/"

// krew makes the manifest by which kubectl's plugin manager installs the command line as `kubectl
// capstan`.
func (m *maker) krew(context.Context) error {
	platforms := make([]map[string]any, 0, len(m.archives))
	for _, a := range m.archives {
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": a.platform.os, "arch": a.platform.arch}},
			"uri":      downloads + m.version + "/" + a.name,
			"sha256":   sum(a.data),
			"bin":      a.program,
		})
	}

	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]string{"name": "capstan"},
		"spec": map[string]any{
			"version":          m.version,
			"homepage":         "https://github.com/capstan-project/capstan",
			"shortDescription": "Run Cluster API providers as Helm releases",
			"description":      "Makes Helm charts of Cluster API providers, checks and mirrors them, generates workload clusters from their templates, and shows what the Capstan operator does.\n",
			"platforms":        platforms,
		},
	})
	if err != nil {
		return err
	}

	return m.write("capstan.krew.yaml", manifest)
}
