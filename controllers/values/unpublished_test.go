package values_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/controllers/values"
	"github.com/capstan-project/capstan/test/testproviders"
)

// doubted returns the flags that managers of a chart may not have, as field and name.
func doubted(t *testing.T, c *chart.Chart, spec string) []string {
	t.Helper()

	schema, err := values.ReadSchema(c)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, warnings, err := schema.Values(values.Input{Spec: specOf(t, spec)})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	all := make([]string, 0, len(warnings.Flags))
	for _, f := range warnings.Flags {
		text := f.Field + " --" + f.Name
		if f.Similar != "" {
			text += " (" + f.Similar + ")"
		}

		all = append(all, text)
	}

	return all
}

// TestUnpublishedFlags checks for which flags, which the manager may not have, there are warnings.
func TestUnpublishedFlags(t *testing.T) {
	for name, c := range map[string]struct {
		// published are the arguments in the components.
		published string
		spec      string
		want      []string
	}{
		"nothing is set": {},
		"verbosity": {
			published: "--leader-elect", spec: `{manager: {verbosity: 5}}`, want: []string{"spec.manager.verbosity --v"},
		},
		"verbosity of one that is published with it": {published: "--v=0", spec: `{manager: {verbosity: 5}}`},
		"another flag of one that is published with verbosity only": {
			published: "--v=0", spec: `{manager: {syncPeriod: 1h}}`, want: []string{"spec.manager.syncPeriod --sync-period"},
		},
		"one that uses Cluster API's library": {
			published: "--insecure-diagnostics=true", spec: `{manager: {verbosity: 5, syncPeriod: 1h, cacheNamespace: a}}`,
		},
		"one that uses an older version of it": {published: "--metrics-bind-addr=:1", spec: `{manager: {verbosity: 5}}`},
		"a flag that the user sets, too": {
			published: "--leader-elect", spec: `{manager: {verbosity: 5, additionalArgs: {v: "2"}}}`,
			want: []string{"spec.manager.additionalArgs[v] --v"},
		},
		"an argument that it is published with": {
			published: "--leader-elect", spec: `{manager: {additionalArgs: {--leader-elect: "false"}}}`,
		},
		"arguments of one that uses Cluster API's library": {
			published: "--diagnostics-address=:1,--insecure-diagnostics=true",
			spec:      `{manager: {additionalArgs: {watch-filter: a, v: "2", --diagnostic-address: "a"}}}`,
			want:      []string{"spec.manager.additionalArgs[--diagnostic-address] --diagnostic-address (diagnostics-address)"},
		},
		"arguments of a container": {
			published: "--leader-elect",
			spec: `{deployment: {containers: [
				{name: manager, args: {--leader-elect: "true", --leader-elct: "true", --nonsense: "1", --namespace: a}}]}}`,
			want: []string{
				"spec.deployment.containers[manager].args[--leader-elct] --leader-elct (leader-elect)",
				"spec.deployment.containers[manager].args[--nonsense] --nonsense",
			},
		},
		"arguments of a container with another command": {
			spec: `{deployment: {containers: [{name: manager, command: [/other], args: {--nonsense: "1"}}]}}`,
		},
		"feature gates": {
			published: `"--feature-gates=MachinePool=${EXP_MACHINE_POOL:=true},Other=false"`,
			spec:      `{manager: {featureGates: {MachinePool: false, MachinePol: true, New: true}}}`,
			want: []string{
				"spec.manager.featureGates[MachinePol] --feature-gates=MachinePol (MachinePool)",
				"spec.manager.featureGates[New] --feature-gates=New",
			},
		},
		"feature gates of one that is published with none": {
			spec: `{manager: {featureGates: {A: true, B: true}}}`,
			want: []string{"spec.manager.featureGates[A] --feature-gates"},
		},
		"debug": {
			published: "--leader-elect", spec: `{manager: {debug: true, verbosity: 4}}`,
			want: []string{"spec.manager.debug --v", "spec.manager.debug --profiler-address"},
		},
		"the concurrency of a controller": {
			published: "--insecure-diagnostics=true,--a-concurrency=1,--machine-concurrency=1",
			spec:      `{manager: {controller: {groupKindConcurrency: {A: 1, B.example.com: 2, Machin: 3}}}}`,
			want: []string{
				"spec.manager.controller.groupKindConcurrency[B.example.com] --b-concurrency",
				"spec.manager.controller.groupKindConcurrency[Machin] --machin-concurrency (machine-concurrency)",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			components := strings.Replace(deploymentComponents("lone", true, "manager"),
				"{name: manager,", fmt.Sprintf("{name: manager, args: [%s],", c.published), 1)

			NewWithT(t).Expect(doubted(t, buildChart(t, components), c.spec)).To(ConsistOf(c.want))
		})
	}
}

// TestUnpublishedFlagsOfReleases checks which real managers are taken for ones that have the flag for verbosity.
func TestUnpublishedFlagsOfReleases(t *testing.T) {
	folder := testproviders.Folder(t)

	for label, has := range map[string]bool{
		"cluster-api": true, "bootstrap-kubeadm": true, "infrastructure-docker": true, "infrastructure-aws": true,
		"infrastructure-azure": true, "infrastructure-gcp": true, "addon-helm": true,
		"bootstrap-k0smotron": false, "infrastructure-hetzner": false,
	} {
		directory, err := source.NewDirectory(filepath.Join(folder, label))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		versions, err := directory.Versions(t.Context())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		for _, version := range versions {
			t.Run(label+" "+version.Name, func(t *testing.T) {
				g := NewWithT(t)
				fetched, err := directory.Fetch(t.Context(), version)
				g.Expect(err).NotTo(HaveOccurred())
				built, err := chartgen.Build(fetched.Bundle)
				g.Expect(err).NotTo(HaveOccurred())

				found := doubted(t, built, `{manager: {verbosity: 5}}`)
				g.Expect(len(found) == 0).To(Equal(has), "%v", found)
			})
		}
	}
}
