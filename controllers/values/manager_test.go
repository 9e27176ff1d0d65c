package values_test

import (
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/controllers/values"
	"github.com/capstan-project/capstan/test/testproviders"
)

// publishedArgs are the arguments of the container "manager" of managerComponents.
var publishedArgs = []string{"--leader-elect", "--webhook-port=2345", "--feature-gates=Pool=false,Old=true", "--v=0"}

// TestManager covers the fields of spec.manager that set a flag of any manager, and which arguments they
// replace and add.
func TestManager(t *testing.T) {
	chart := buildChart(t, managerComponents)

	for name, c := range map[string]struct {
		spec string
		// replaced are the changed published arguments, by index.
		replaced map[int]string
		// added are the arguments after the published ones.
		added []string
	}{
		"nothing":                   {spec: `{manager: {}}`},
		"syncPeriod":                {spec: `{manager: {syncPeriod: 7h}}`, added: []string{"--sync-period=25200s"}},
		"syncPeriod below a second": {spec: `{manager: {syncPeriod: 1500ms}}`, added: []string{"--sync-period=1.5s"}},
		"cacheNamespace":            {spec: `{manager: {cacheNamespace: one}}`, added: []string{"--namespace=one"}},
		"profilerAddress": {
			spec:  `{manager: {profilerAddress: "localhost:1234"}}`,
			added: []string{"--profiler-address=localhost:1234"},
		},
		"verbosity":                     {spec: `{manager: {verbosity: 5}}`, replaced: map[int]string{3: "--v=5"}},
		"verbosity 0":                   {spec: `{manager: {verbosity: 0}}`, replaced: map[int]string{3: "--v=0"}},
		"verbosity 1, which is not set": {spec: `{manager: {verbosity: 1}}`},
		"debug": {
			spec:     `{manager: {debug: true}}`,
			replaced: map[int]string{3: "--v=5"},
			added:    []string{"--profiler-address=localhost:6060"},
		},
		"featureGates are merged with the published ones": {
			spec:     `{manager: {featureGates: {Pool: true, New: false}}}`,
			replaced: map[int]string{2: "--feature-gates=New=false,Old=true,Pool=true"},
		},
		"additionalArgs add and replace": {
			spec:     `{manager: {additionalArgs: {--log_dir: /var/log, --webhook-port: "3456", v: "2"}}}`,
			replaced: map[int]string{1: "--webhook-port=3456", 3: "--v=2"},
			added:    []string{"--log_dir=/var/log"},
		},
		"groupKindConcurrency": {
			spec: `{manager: {controller: {groupKindConcurrency: {
				AWSCluster: 12, machine: 3, AWSMachine.infrastructure.cluster.x-k8s.io: 4}}}}`,
			added: []string{"--awscluster-concurrency=12", "--awsmachine-concurrency=4", "--machine-concurrency=3"},
		},
		"metrics.insecureDiagnostics false, which is not set": {
			spec: `{manager: {metrics: {insecureDiagnostics: false}}}`,
		},
		"webhook": {
			spec:     `{manager: {webhook: {port: 3579, certDir: /tmp/certs}}}`,
			replaced: map[int]string{1: "--webhook-port=3579"},
			added:    []string{"--webhook-cert-dir=/tmp/certs"},
		},
		"manager overrides the container's args": {
			spec: `{manager: {verbosity: 7, webhook: {port: 1}},
				deployment: {containers: [{name: manager, args: {--v: "3", --webhook-port: "2", --other: "4"}}]}}`,
			replaced: map[int]string{1: "--webhook-port=1", 3: "--v=7"},
			added:    []string{"--other=4"},
		},
		"additionalArgs override the container's args, and fields override additionalArgs": {
			spec: `{manager: {verbosity: 7, additionalArgs: {--v: "6", --other: "5"}},
				deployment: {containers: [{name: manager, args: {--v: "3", --other: "4"}}]}}`,
			replaced: map[int]string{3: "--v=7"},
			added:    []string{"--other=5"},
		},
	} {
		t.Run(name, func(t *testing.T) { expectArgs(t, chart, c.spec, c.replaced, c.added) })
	}
}

func TestLeaderElection(t *testing.T) {
	chart := buildChart(t, managerComponents)

	for name, c := range map[string]struct {
		leaderElection string
		replaced       map[int]string
		added          []string
	}{
		"enabled": {
			leaderElection: `{leaderElect: true, leaseDuration: 7h, renewDeadline: 10s, retryPeriod: 2s,
				resourceLock: leases}`,
			replaced: map[int]string{0: "--leader-elect=true"},
			added: []string{
				"--leader-elect-lease-duration=25200s",
				"--leader-elect-renew-deadline=10s",
				"--leader-elect-retry-period=2s",
			},
		},
		"with durations that are not set, as a program sends them": {
			leaderElection: `{leaderElect: true, leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s}`,
			replaced:       map[int]string{0: "--leader-elect=true"},
		},
		"disabled, and nothing more": {
			leaderElection: `{leaderElect: false, resourceName: foo, leaseDuration: 7h}`,
			replaced:       map[int]string{0: "--leader-elect=false"},
		},
		"as published, with another lease": {
			leaderElection: `{leaseDuration: 1m}`,
			added:          []string{"--leader-elect-lease-duration=60s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectArgs(t, chart, "{manager: {leaderElection: "+c.leaderElection+"}}", c.replaced, c.added)
		})
	}
}

// expectArgs compares the arguments of the manager for a spec without warnings.
func expectArgs(t *testing.T, c *chart.Chart, spec string, replaced map[int]string, added []string) {
	t.Helper()

	g := NewWithT(t)

	want := slices.Clone(publishedArgs)
	for i, arg := range replaced {
		want[i] = arg
	}

	got, warnings, err := customized(t, c, values.Input{Spec: specOf(t, spec)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(containerNamed(t, got["tiny-controller-manager"], "manager").Args).To(Equal(append(want, added...)))
	g.Expect(warnings).To(BeEmpty())
}

func TestWarnings(t *testing.T) {
	chart := buildChart(t, managerComponents)

	for name, c := range map[string]struct {
		spec     string
		warnings []string
	}{
		"fields without a flag": {
			`{manager: {gracefulShutDown: 30s, controller: {cacheSyncTimeout: 1, recoverPanic: true},
				leaderElection: {resourceLock: configmaps, resourceNamespace: here}}}`,
			[]string{
				"spec.manager.gracefulShutDown is ignored: Cluster API's managers have no flag for it",
				"spec.manager.controller.cacheSyncTimeout is ignored: Cluster API's managers have no flag for it",
				"spec.manager.controller.recoverPanic is ignored: Cluster API's managers have no flag for it",
				"spec.manager.leaderElection.resourceLock is ignored: Cluster API's managers have no flag for it",
				"spec.manager.leaderElection.resourceNamespace without resourceName is ignored: " +
					"Cluster API's managers have no flag for it",
			},
		},
		"--namespace among the container's args": {
			`{deployment: {containers: [{name: manager, args: {--namespace: one, namespace: two}}]}}`,
			[]string{
				"spec.deployment.containers: --namespace of container manager is ignored: a provider watches all namespaces; " +
					"spec.manager.cacheNamespace restricts it to one",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, warnings, err := customized(t, chart, values.Input{Spec: specOf(t, c.spec)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(warnings).To(Equal(c.warnings))
			g.Expect(containerNamed(t, got["tiny-controller-manager"], "manager").Args).To(Equal(publishedArgs))
		})
	}
}

func TestProbes(t *testing.T) {
	g := NewWithT(t)
	got, _, err := customized(
		t,
		buildChart(t, managerComponents),
		values.Input{
			Spec: specOf(t, `{manager: {health: {livenessEndpointName: mostly, readinessEndpointName: /readyish}}}`),
		},
	)
	g.Expect(err).NotTo(HaveOccurred())

	container := containerNamed(t, got["tiny-controller-manager"], "manager")
	g.Expect(container.LivenessProbe.HTTPGet.Path).To(Equal("/mostly"))
	g.Expect(container.LivenessProbe.HTTPGet.Port.StrVal).To(Equal("healthz"), "the rest of the probe stays")
	g.Expect(container.LivenessProbe.PeriodSeconds).To(BeEquivalentTo(7))
	g.Expect(container.ReadinessProbe.HTTPGet.Path).To(Equal("/readyish"))
	g.Expect(container.Args).To(Equal(publishedArgs))
}

func TestOnlyContainer(t *testing.T) {
	g := NewWithT(t)
	got, warnings, err := customized(
		t,
		buildChart(t, deploymentComponents("lone", true, "controller")),
		values.Input{Spec: specOf(t, `{manager: {verbosity: 3},
			deployment: {containers: [{name: controller, args: {--namespace: one}}]}}`)},
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(containerNamed(t, got["lone"], "controller").Args).To(Equal([]string{"--v=3"}))
	g.Expect(warnings).To(ConsistOf(ContainSubstring("--namespace of container controller is ignored")))
}

// TestAzure covers the one published provider with two managers, one of which is another project's.
func TestAzure(t *testing.T) {
	folder := testproviders.Folder(t)

	const (
		capz = "capz-controller-manager"
		aso  = "azureserviceoperator-controller-manager"
	)

	g := NewWithT(t)
	directory, err := source.NewDirectory(filepath.Join(folder, "infrastructure-azure"))
	g.Expect(err).NotTo(HaveOccurred())
	versions, err := directory.Versions(t.Context())
	g.Expect(err).NotTo(HaveOccurred())

	for _, version := range versions {
		fetched, err := directory.Fetch(t.Context(), version)
		g.Expect(err).NotTo(HaveOccurred())
		built, err := chartgen.Build(fetched.Bundle)
		g.Expect(err).NotTo(HaveOccurred())

		args := func(spec, deployment string) []string {
			got, _, err := customized(t, built, values.Input{Spec: specOf(t, spec)})
			g.Expect(err).NotTo(HaveOccurred())

			return containerNamed(t, got[deployment], "manager").Args
		}

		const both = `
manager: {featureGates: {EdgeZone: true}, verbosity: 4}
additionalDeployments: {azureserviceoperator-controller-manager: {deployment: {replicas: 1}}}
`

		g.Expect(args(both, capz)).To(ContainElements("--v=4", And(
			HavePrefix("--feature-gates="),
			ContainSubstring("EdgeZone=true"),
			ContainSubstring("ASOAPI=true"),
		)), version.Name)
		g.Expect(args(both, aso)).
			To(And(ContainElement("--v=2"), Not(ContainElement(HavePrefix("--feature-gates")))), version.Name)

		const onlyManager = `{manager: {verbosity: 4}}`

		g.Expect(args(onlyManager, capz)).To(ContainElement("--v=4"), version.Name)
		g.Expect(args(onlyManager, aso)).To(ContainElement("--v=2"), version.Name)
	}
}
