package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// group are the files with scenarios, without "_test.go", that show what the packages below a folder do.
type group struct {
	folder string
	files  []string
}

// groups select scenarios. All groups count whose folder a changed file is below.
var groups = []group{
	{"api/", []string{"install", "users", "refusals", "lifecycle", "replaced", "samples"}},
	{"chartgen/", []string{"plainhelm", "cluster_values", "customize", "install", "real", "census"}},
	{"chartgen/mirror", []string{"airgap"}},
	{"chartgen/oci", []string{"registry", "airgap"}},
	{"chartgen/signature", []string{"registry"}},
	{"chartgen/source", []string{"sources", "registry", "catalog"}},
	{"chartgen/store", []string{"requests", "registry"}},
	{"chartgen/transport", []string{"sources", "registry"}},
	{"cmd/", []string{"cli", "readers", "init", "ui", "browser", "audit", "airgap", "hub"}},
	{"cmd/operator", []string{"start", "leader"}},
	{"contract/", []string{"audit"}},
	{"controllers/access", []string{"access", "target"}},
	{"controllers/clusters", []string{"target", "elsewhere", "owner", "silent"}},
	{"controllers/crds", []string{
		"crds", "crds_ca", "crds_crash", "crds_dropped_real", "crds_patches", "crds_real", "conversion", "lost_status",
		"migration_beside", "releases_real",
	}},
	{"controllers/fetch", []string{"sources", "registry", "catalog", "policy"}},
	{"controllers/health", []string{
		"care", "install", "drain", "job", "reconciles", "unconverted", "webhooks", "webhooks_ca", "watch",
	}},
	{"controllers/inventory", []string{"adopt", "cluster_api_operator"}},
	{"controllers/managers", []string{"customize", "drain"}},
	{"controllers/manifest", []string{"customize", "policies", "waves", "own", "access"}},
	{"controllers/namespaces", []string{"watch", "access", "requests"}},
	{"controllers/offers", []string{"automatic", "choice", "restore"}},
	{"controllers/permissions", []string{"target", "users"}},
	{"controllers/plan", []string{"input", "requests", "registry", "customize"}},
	{"controllers/preflight", []string{"dependencies", "fleet", "foreign", "next_contract", "owner"}},
	{"controllers/provider", []string{
		"lifecycle", "rollback", "refusals", "restore", "care", "crash", "faults", "lost", "lost_status", "fleet", "waves",
	}},
	{"controllers/release", []string{
		"lifecycle", "rollback", "helm_meanwhile", "unconfirmed", "crash", "faults", "lost", "drift", "fields", "policies",
		"waves", "leader",
	}},
	{"controllers/removal", []string{"delete", "delete_always", "lost_status", "own"}},
	{"controllers/seats", []string{"silent"}},
	{"controllers/takeover", []string{
		"adopt", "adopt_real", "adopt_upgrade", "cluster_api_operator", "foreign", "predecessor",
	}},
	{"controllers/usage", []string{"delete", "delete_always"}},
	{"controllers/values", []string{"customize", "cluster_values"}},
	{"controllers/watch", []string{"watch", "input", "reconciles", "requests", "webhooks_ca"}},
	{"controllers/webhooks", []string{"webhooks_ca"}},
}

// helpers are files of the scenarios' package that all scenarios use.
var helpers = []string{"suite", "matchers", "tiny"}

// scenarioFlags returns the flags that select the scenarios for changed files: none if no scenario shows what they do.
func scenarioFlags(files []string) []string {
	var selected []string

	for _, file := range files {
		for _, g := range groups {
			if strings.HasPrefix(file, g.folder) {
				selected = append(selected, g.files...)
			}
		}

		if filepath.Dir(file) == scenariosPackage {
			selected = append(selected, strings.TrimSuffix(filepath.Base(file), "_test.go"))
		}

		if strings.HasPrefix(file, "test/harness/") || strings.HasPrefix(file, "test/bed/") {
			selected = append(selected, helpers...)
		}
	}

	slices.Sort(selected)
	selected = slices.Compact(selected)

	var flags []string

	for _, name := range selected {
		if slices.Contains(helpers, name) {
			return []string{"--focus-file=."} // all
		}

		flags = append(flags, "--focus-file=/"+name+"_test.go")
	}

	return flags
}
