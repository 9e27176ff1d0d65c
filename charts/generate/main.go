// Command generate generates files from charts/capstan: the chart's README from the comments in
// values.yaml, and the kustomize bases config/default and config/monitoring from the templates. It also makes the
// descriptions of the CRDs readable.
// `make manifests` runs it in the module's root folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"helm.sh/helm/v3/pkg/chart/loader"
)

const folder = "charts/capstan"

// enabled are the values that enable monitoring, which needs the Prometheus operator and Grafana.
var enabled = map[string]any{"metrics": map[string]any{
	"serviceMonitor": map[string]any{"enabled": true},
	"prometheusRule": map[string]any{"enabled": true},
	"dashboard":      map[string]any{"enabled": true},
}}

func isMonitoring(template string) bool {
	return slices.Contains([]string{"servicemonitor.yaml", "prometheusrule.yaml", "dashboard.yaml"}, template)
}

func all(string) bool { return true }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	if err := joinCRDs(); err != nil {
		return err
	}

	capstan, err := loader.LoadDir(folder)
	if err != nil {
		return err
	}

	readme, err := readmeOf(folder, capstan)
	if err != nil {
		return err
	}

	operator, err := render(capstan, nil, all)
	if err != nil {
		return err
	}

	monitoring, err := render(capstan, enabled, isMonitoring)
	if err != nil {
		return err
	}

	for file, content := range map[string][]byte{
		filepath.Join(folder, "README.md"):  readme,
		"config/default/operator.yaml":      operator,
		"config/monitoring/monitoring.yaml": monitoring,
	} {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}

	return nil
}
