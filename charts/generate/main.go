// Command generate makes what follows from charts/capstan: the chart's README, from the comments in
// values.yaml, and the kustomize base in config/default with the optional monitoring beside it,
// from the templates. `make manifests` runs it in the module's folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/capstan-project/capstan/charts"
)

const folder = "charts/capstan"

// monitoring switches on what needs the Prometheus operator and Grafana.
var monitoring = map[string]any{"metrics": map[string]any{
	"serviceMonitor": map[string]any{
		"enabled": true,
	},
	"prometheusRule": map[string]any{"enabled": true},
	"dashboard":      map[string]any{"enabled": true},
}}

func monitors(template string) bool {
	return slices.Contains([]string{"servicemonitor.yaml", "prometheusrule.yaml", "dashboard.yaml"}, template)
}

func everything(string) bool { return true }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	capstan, err := charts.Load(folder)
	if err != nil {
		return err
	}

	readme, err := charts.Readme(folder, capstan)
	if err != nil {
		return err
	}

	operator, err := charts.Render(capstan, nil, everything)
	if err != nil {
		return err
	}

	beside, err := charts.Render(capstan, monitoring, monitors)
	if err != nil {
		return err
	}

	for file, content := range map[string][]byte{
		filepath.Join(folder, "README.md"): readme, "config/default/operator.yaml": operator, "config/monitoring/monitoring.yaml": beside,
	} {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}

	return nil
}
