package main

import (
	"context"

	"sigs.k8s.io/yaml"
)

const (
	// downloads is the base URL of release files; the version follows.
	downloads = "https://github.com/capstan-project/capstan/releases/download/"

	shortDescription = "Run Cluster API providers as Helm releases"
	description      = "Builds Helm charts from Cluster API providers, checks and mirrors them, generates " +
		"workload clusters from their templates, and shows and controls what the Capstan operator does.\n"
)

// krew writes the manifest that the plugin manager krew needs to install the program as the plugin
// `kubectl capstan`.
func (b *builder) krew(context.Context) error {
	platforms := make([]map[string]any, 0, len(b.archives))
	for _, a := range b.archives {
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": a.platform.os, "arch": a.platform.arch}},
			"uri":      downloads + b.version + "/" + a.name,
			"sha256":   checksum(a.data),
			"bin":      a.program,
		})
	}

	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]string{"name": "capstan"},
		"spec": map[string]any{
			"version":          b.version,
			"homepage":         "https://github.com/capstan-project/capstan",
			"shortDescription": shortDescription,
			"description":      description,
			"platforms":        platforms,
		},
	})
	if err != nil {
		return err
	}

	return b.write("capstan.krew.yaml", manifest)
}
